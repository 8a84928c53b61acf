"""How rules unfold: hierarchies as lists, chains and cycles at once, joins of unions; what is left to closures, and why."""

from __future__ import annotations

import doctest
import pkgutil

import pytest

from engine import rewrite
from engine.ir.rules import RuleSet
from engine.plan.nodes import ClosedSource, sources
from engine.rewrite import PASSES, alternatives, equality, magic, relevance, unique_names
from engine.rewrite.programs import RULE_PASSES
from tests.unit.rewrite.under_rules import E, Data, compiled, text, written

SUB_CLASS, TYPE = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB_PROPERTY, DOMAIN = (SUB_CLASS.replace("subClassOf", name) for name in ("subPropertyOf", "domain"))


def rewritten(query: str, behind: list[tuple[str, str, str]] = [], own: dict[str, RuleSet] = {}) -> tuple[str, bool]:
    """The query after the passes, on one line, and whether closures are made."""
    made = compiled(query, Data((), (), tuple(behind)), own)
    lines = [line.strip() for line in made.explain("rewritten").splitlines() if not line.startswith("#")]
    closed = any(isinstance(source, ClosedSource) for source in sources(made.plan))
    return " ".join(lines).replace(E, ""), closed


def test_a_cycle_of_classes_is_a_list() -> None:
    schema = [(f"<{E}A>", SUB_CLASS, f"<{E}B>"), (f"<{E}B>", SUB_CLASS, f"<{E}A>"), (f"<{E}C>", SUB_CLASS, f"<{E}A>")]
    assert "WHERE { ?x a (<A> | <B> | <C>) . }" in rewritten(text("default with USING", "?x a :A", ["rdfs"]), schema)[0]


def test_properties_and_domains_are_a_distinct_union() -> None:
    schema = [(f"<{E}near>", DOMAIN, f"<{E}Thing>"), (f"<{E}on>", SUB_PROPERTY, f"<{E}near>")]
    found, closed = rewritten(text("default with USING", "?x a :Thing", ["rdfs"], "SELECT ?x"), schema)
    assert "SELECT DISTINCT ?x WHERE { { ?x a <Thing> . } UNION { ?x (<near> | <on>) ?.0_1 . } }" in found and not closed


def test_joins_of_unions() -> None:
    own = written(("?x near ?y, ?y near ?z => ?x reaches ?z", "?x on ?y => ?x near ?y", "?x under ?y => ?y near ?x"))
    query = text("default", "?x :reaches ?y", ["own"])
    found, closed = rewritten(query, own=own)
    assert not closed and found.count("(<near> | <on>)") == 2 and found.count("<under>") == 2 and found.count("DISTINCT") == 3


def test_what_is_implied_is_left_out() -> None:
    own = written(("?x on ?y => ?x near ?y", "?x on ?y, ?y on ?z => ?x near ?y"))
    query = text("default", "?x :near ?y", ["own"])
    assert "WHERE { ?x (<near> | <on>) ?y . }" in rewritten(query, own=own)[0]


def test_what_no_rule_reaches_is_read_as_it_is() -> None:
    """Whatever else the rules derive, recursive or not."""
    own = written(["?x near ?y, ?y near ?z => ?x near ?z"])
    assert rewritten(text("window", "?x :p+ ?y OPTIONAL { ?y :q ?z }", ["own"]), own=own)[1] is False


@pytest.mark.parametrize(("line", "pattern", "reason"), [
    ("?x near ?y, ?y near ?z => ?x near ?z", "?x :near ?y", "recursive through"),
    ("?x on ?y, ?y on ?x => false", "?x :near ?y", "head false"),
    ("?x on ?y => ?x near ?y", "?x :near* ?y", "a path"),
    (" ; ".join(("?x on ?y, ?y on ?z => ?x near ?z", *(f"?x near{n} ?z" for n in range(3)))), "?x ?p ?y", None),
])
def test_what_is_not_unfolded(line: str, pattern: str, reason: str | None) -> None:
    made = compiled(text("default", pattern, ["own"]), Data(()), written([line]))
    last = [found for found in made.explain("rewritten").splitlines() if found.startswith("# unfold: ")]
    assert (reason or "-> 0 rules") in last[0]


def test_each_pass_is_explained() -> None:
    schema = [(f"<{E}Cat>", SUB_CLASS, f"<{E}Pet>"), (f"<{E}Dog>", SUB_CLASS, f"<{E}Animal>")]
    shown = compiled(text("default with USING", "?x a :Pet", ["rdfs"]), Data((), (), tuple(schema)), {}).explain("rewritten")
    headings = [line for line in shown.splitlines() if line.startswith("# ") and not line.startswith("#  ")]
    assert headings == ["# rdfs: 23 rules", "# partial: 23 rules -> 1 rule and 4 facts", "# relevance: 1 rule and 4 facts -> 1 rule",
                        "# unfold: 1 rule -> 0 rules, the patterns say what the rules said"]
    assert [line for line in shown.splitlines() if "<http://ex.org/Cat> <http://ex.org/Pet>" in line and "Dog" not in line]


@pytest.mark.parametrize("module", [alternatives, equality, magic, relevance, unique_names])
def test_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0    # type: ignore[arg-type]


def test_every_pass_is_a_module() -> None:
    assert set(PASSES) <= {module.name for module in pkgutil.iter_modules(rewrite.__path__)}
    assert PASSES == (*RULE_PASSES, "unfold", "magic", "equality", "unique_names")
