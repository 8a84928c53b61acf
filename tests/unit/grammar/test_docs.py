"""The examples of docs/sparql.md parse, and its refusal is the one that the parser gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.ir.spans import DiagnosticError
from grammar import parse

PAGE = (Path(__file__).parents[3] / "docs" / "sparql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sparql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_parse(text: str) -> None:
    parse(text)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 6


def test_the_refusal() -> None:
    shown = re.findall(r"```\n(line .*?)```", PAGE, re.DOTALL)
    with pytest.raises(DiagnosticError) as caught:
        parse("SELECT *\nFROM STREAM <http://s> [RANGE 10 STEP 2s]\nWHERE {}")
    assert [f"{diagnostic.render()}\n" for diagnostic in caught.value.diagnostics] == shown
