"""Golden files: documents of tests/golden/rif in both syntaxes, and the rules that they mean. ``pytest --update`` rewrites the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ir.notation import show_rule_set
from engine.ir.rules import RuleSet
from grammar.rif.parse import parse_rules
from tests.shared import shared
from tests.unit.grammar.rif_xml import as_xml
from tests.unit.grammar.test_golden import tree

FOLDER = Path(__file__).parents[2] / "golden" / "rif"
TEXTS = sorted(FOLDER.glob("*.rifps"))
PS, XML = "text/x-rif-ps", "application/rif+xml"


def shown(rules: RuleSet) -> str:
    """The rules in the readable notation, then the imports."""
    printed = show_rule_set(rules, lambda pattern: "")
    return printed + "\n".join(line for imp in rules.imports for line in tree(imp)) + "\n"


def test_there_are_golden_files() -> None:
    assert len(TEXTS) >= 5


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_rules_of_a_document(path: Path, request: pytest.FixtureRequest) -> None:
    found = shown(parse_rules(path.read_text("utf-8"), PS, path.stem))
    golden = path.with_suffix(".txt")
    if request.config.getoption("--update"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text("utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_both_syntaxes_say_the_same(path: Path) -> None:
    """The file in RIF/XML, and what the other one is when written as RIF/XML."""
    rules = parse_rules(path.read_text("utf-8"), PS, path.stem)
    assert parse_rules(path.with_suffix(".rif").read_text("utf-8"), XML, path.stem) == rules
    assert parse_rules(as_xml(path.read_text("utf-8"), path.stem), XML, path.stem) == rules


def test_w3c_documents_say_the_same_when_written_anew() -> None:
    """Every document of the W3C cases that is accepted."""
    paths = [path for path in sorted(shared("w3c-rif-core").glob("Positive*/*/*.rifps")) if "conclusion" not in path.name]
    paths = [path for path in paths if "OWL-Direct" not in path.read_text("utf-8")]
    assert len(paths) > 10
    for path in paths:
        text = path.read_text("utf-8")
        assert parse_rules(as_xml(text, "w3c"), XML, "w3c") == parse_rules(text, PS, "w3c"), path
