"""Golden files: statements of tests/golden/parsed/*.rq with the IR they parse to. ``pytest --update`` rewrites it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.ir.printer import show
from engine.ir.terms import Constant, Variable
from grammar import parse

FOLDER = Path(__file__).parents[2] / "golden" / "parsed"
TEXTS = sorted(FOLDER.glob("*.rq"))


def tree(node: Any, depth: int = 0, label: str = "") -> Iterator[str]:
    """A node of the IR with its fields, one a line, indented; what is at its default of None or () is left out."""
    indent = "  " * depth + (f"{label}: " if label else "")
    match node:
        case Variable(name=name):
            yield f"{indent}?{name}"
        case Constant(token=token):
            yield f"{indent}{token}"
        case tuple():
            yield f"{indent}({len(node)})"
            for item in node:
                yield from tree(item, depth + 1)
        case _ if is_dataclass(node):
            yield f"{indent}{type(node).__name__}"
            for field in fields(node):
                value = getattr(node, field.name)
                if field.compare and field.name != "text" and value not in (None, ()):
                    yield from tree(value, depth + 1, field.name)
        case _:
            yield f"{indent}{node!r}"


def test_there_are_golden_files() -> None:
    assert TEXTS


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_parsed(path: Path, request: pytest.FixtureRequest) -> None:
    statement = parse(path.read_text(encoding="utf-8"))
    found = f"{show(statement)}\n" + "\n".join(tree(statement)) + "\n"
    golden = path.with_suffix(".txt")
    if request.config.getoption("--update"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")
