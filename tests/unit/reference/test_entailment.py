"""What a query sees under rule sets that are no RDFS, and when a new version of one counts."""

from __future__ import annotations

from engine.ir.rules import TRIPLE, Atom, Fact, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.records import Event, Mark, Pause, Record, Register, Resume, RulesVersion
from engine.reference.dataset import Content, Dataset, Graph
from engine.reference.entailment import closing, entail
from engine.reference.streams import run
from engine.timeline import ALWAYS
from grammar import parse

X, Y = Variable("x"), Variable("y")
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def triple(*terms: Variable | str) -> Atom:
    return Atom(TRIPLE, tuple(Constant(term) if isinstance(term, str) else term for term in terms))


SETS = {"turn": RuleSet("turn", (Rule(triple(Y, "<p>", X), (triple(X, "<p>", Y),)),), (Fact(triple("<f>", "<p>", "<g>"), ALWAYS),)),
        "copy": RuleSet("copy", (Rule(triple(X, "<q>", Y), (triple(X, "<p>", Y),)),))}
ONE = Graph([("<a>", "<p>", "<b>")])


def test_rule_sets_are_taken_together() -> None:
    found = closing(["turn", "copy"], SETS)(ONE).triples
    assert found == {(s, p, o) for p in ("<p>", "<q>") for s, o in (("<a>", "<b>"), ("<b>", "<a>"), ("<f>", "<g>"), ("<g>", "<f>"))}
    assert closing(["copy", "gone"], SETS)(ONE).triples == {*ONE.triples, ("<a>", "<q>", "<b>")}


def test_rdfs_alone_needs_no_rule_set() -> None:
    schema = Graph([("<C>", SUB, "<D>"), ("<a>", RDF_TYPE, "<C>")])
    assert closing(["rdfs"], {})(schema).triples - schema.triples == {("<a>", RDF_TYPE, "<D>"), ("<C>", SUB, "<C>"), ("<D>", SUB, "<D>")}


def test_a_window_does_not_show_what_the_background_entails_alone() -> None:
    seen = entail(Dataset(ONE, windows={"<w>": Content(Graph([("<c>", "<p>", "<d>")]))}), ONE, Graph(), closing(["turn"], SETS))
    assert seen.windows["<w>"].graph.triples == {("<c>", "<p>", "<d>"), ("<d>", "<p>", "<c>")}
    assert seen.default.triples == {("<a>", "<p>", "<b>"), ("<b>", "<p>", "<a>"), ("<f>", "<p>", "<g>"), ("<g>", "<p>", "<f>")}


TEXT = "REGISTER QUERY q AS ASK FROM STREAM <s> [RANGE 2s STEP 1s] USING RULES r WHERE { ?x <http://ex.org/new> ?y }"
VERSION = RuleSet("r", (Rule(triple(X, "<http://ex.org/new>", Y), (triple(X, "<http://ex.org/p>", Y),)),))


def asked(*records: Record) -> dict[int, bool]:
    """The answer at each second."""
    texts = {"new": VERSION, "none": RuleSet("r", ())}
    found = run(records, parse, lambda text, media, name: texts[text])["q"]
    return {evaluation.at // 1000: evaluation.result.boolean for evaluation in found}


def event(position: int, t: int) -> Event:
    return Event(position, "s", t, None, (("<a>", "<http://ex.org/p>", "<b>"),), t)


def test_a_version_counts_from_the_first_evaluation_after_the_watermark_at_its_record() -> None:
    assert asked(RulesVersion(1, "r", "m", "none"), Register(2, "q", TEXT, 2), event(3, 500), Mark(4, "s", 1_000),
                 RulesVersion(5, "r", "m", "new"), event(6, 2_500), RulesVersion(7, "r", "", None), Mark(8, "s", 4_000)) == {
        1: False, 2: True, 3: False, 4: False}


def test_what_a_paused_query_missed_is_evaluated_with_the_rules_of_then() -> None:
    records = [RulesVersion(1, "r", "m", "new"), Register(2, "q", TEXT, 2), event(3, 500), Pause(4, "q"), event(5, 1_500),
               RulesVersion(6, "r", "m", "none"), event(7, 2_500), Resume(8, "q", True)]
    assert asked(*records) == {1: True, 2: False}
