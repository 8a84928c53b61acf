"""The examples of docs/sparql.md parse, and its refusal is the one that the parser gives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from engine.ir.spans import DiagnosticError
from grammar import parse

PAGE = (Path(__file__).parents[3] / "docs" / "sparql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sparql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_parse(text: str) -> None:
    parse(text)


def test_every_block_is_of_a_kind_that_a_test_reads() -> None:
    """Statements here; items and examples in tests/test_dialects.py; the others are the grammar, a drawing and the refusal."""
    kinds = Counter(re.findall(r"^```(\w*)\n.*?^```$", PAGE, re.DOTALL | re.MULTILINE))
    assert set(kinds) == {"sparql", "items", "example", ""}
    assert kinds["sparql"] == len(EXAMPLES) and kinds[""] == 3


def test_the_refusal() -> None:
    shown = re.findall(r"```\n(line .*?)```", PAGE, re.DOTALL)
    with pytest.raises(DiagnosticError) as caught:
        parse("SELECT *\nFROM STREAM <http://s> [RANGE 10 STEP 2s]\nWHERE {}")
    assert [f"{diagnostic.render()}\n" for diagnostic in caught.value.diagnostics] == shown
