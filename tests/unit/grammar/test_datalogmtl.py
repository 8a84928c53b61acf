"""DatalogMTL: MeTeoR's notation read as published, what is added to it, what it means, refusals with their places."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.ir.expressions import Call
from engine.ir.printer_facts import print_facts
from engine.ir.rules import (SIMPLE, STREAM, TRIPLE, Assign, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Formula, Head, Import, Negation,
                             Rule, Test as Condition, atoms)
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.terms import RDF_TYPE, XSD, Constant, Variable
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, MIN, Interval, interval, operator
from grammar.datalogmtl.parse import _quick, parse_datalogmtl, parse_facts
from grammar.datalogmtl.reader import Reader
from grammar.rule_text import Report

X, Y = Variable("X"), Variable("Y")
A = Constant('"a"')
EX = "http://ex.org/"
# The paper's program (section 7.2): vehicles that stop for one to four seconds. Speed_0 and Speed_n are Speed=0 and Speed/=0.
SHORT_STOP = """Speed_n(X) :- NotOnMap(X)
ShortStop(X) :- Speed_n(X), Boxminus[1,1]Speed_0(X), Boxminus[2,2]Speed_n(X)
ShortStop(X) :- Speed_n(X), Boxminus[1,1]Speed_0(X), Boxminus[2,2]Speed_0(X), Boxminus[3,3]Speed_n(X)
ShortStop(X) :- Speed_n(X), Boxminus[1,1]Speed_0(X), Boxminus[2,2]Speed_0(X), Boxminus[3,3]Speed_0(X), Boxminus[4,4]Speed_n(X)
ShortStop(X) :- Speed_n(X), Boxminus[1,1]Speed_0(X), Boxminus[2,2]Speed_0(X), Boxminus[3,3]Speed_0(X), Boxminus[4,4]Speed_0(X),
    Boxminus[5,5]Speed_n(X)
"""


def rule(text: str) -> Rule:
    found, = parse_datalogmtl(text, "test").rules
    return found


def fact(text: str) -> Fact:
    found, = parse_facts(text)
    assert parse_datalogmtl(text, "test").facts == (found,)
    return found


def integer(text: str) -> Constant:
    return Constant(f'"{text}"^^<{XSD}integer>')


def seconds(low: float, high: float, closed_low: bool = True, closed_high: bool = True) -> Interval:
    found = interval(int(low * 1_000), int(high * 1_000), closed_start=closed_low, closed_end=closed_high)
    assert found is not None
    return found


# ---------------------------------------------------------------------- what is read


B_OF_X = Atom("B", (X,))
BODIES: list[tuple[str, Formula]] = [
    ("B(X)", B_OF_X),
    ("Boxminus[1,1]B(X)", BoxMinus(operator(1_000, 1_000), B_OF_X)),
    ("Boxminus[1]B(X)", BoxMinus(operator(1_000, 1_000), B_OF_X)),
    ("Diamondminus(0,2.5]B(X)", DiamondMinus(operator(0, 2_500, closed_start=False), B_OF_X)),
    ("Diamondminus[0.001,1/2)B(X)", DiamondMinus(operator(1, 500, closed_end=False), B_OF_X)),
    ("Diamondminus[0,inf)B(X)", DiamondMinus(Interval(0, MAX), B_OF_X)),
    ("Diamondminus[0,+inf)B(X)", DiamondMinus(Interval(0, MAX), B_OF_X)),
    ("SOMETIME[-2,-1)B(X)", DiamondMinus(operator(1_000, 2_000, closed_start=False), B_OF_X)),
    ("SOMETIME(-inf,-1]B(X)", DiamondMinus(Interval(2_000, MAX), B_OF_X)),
    ("SOMETIME[-1,0]B(X)", DiamondMinus(operator(0, 1_000), B_OF_X)),
    ("ALWAYS(-2,0]B(X)", BoxMinus(operator(0, 2_000, closed_end=False), B_OF_X)),
    ("[-][1,2]B(X)", BoxMinus(operator(1_000, 2_000), B_OF_X)),
    ("<->[1,2]B(X)", DiamondMinus(operator(1_000, 2_000), B_OF_X)),
    ("BOXMINUS[1,2] B( X )", BoxMinus(operator(1_000, 2_000), B_OF_X)),
    ("Boxminus[0,4]Diamondminus[0,2]B(X)", BoxMinus(operator(0, 4_000), DiamondMinus(operator(0, 2_000), B_OF_X))),
    ("diamondMinus[0,4][-](0,2)B(X)",
     DiamondMinus(operator(0, 4_000), BoxMinus(operator(0, 2_000, closed_start=False, closed_end=False), B_OF_X))),
]


@pytest.mark.parametrize(("text", "formula"), BODIES, ids=[text for text, _ in BODIES])
def test_bodies(text: str, formula: Formula) -> None:
    assert rule(f"A(X):-{text}") == Rule(Atom("A", (X,)), (formula,))
    assert rule(f"A(X) :- C(X), {text}, D.").body == (Atom("C", (X,)), formula, Atom("D", ()))


HEADS: list[tuple[str, Head]] = [
    ("A(X)", Atom("A", (X,))),
    ("Boxplus[0,3]A(X)", BoxPlus(operator(0, 3_000), Atom("A", (X,)))),
    ("Boxplus(1,inf)A(a)", BoxPlus(Interval(2_001, MAX), Atom("A", (A,)))),
    ("ALWAYS[1,2]A", BoxPlus(operator(1_000, 2_000), Atom("A", ()))),
    ("[+][1,2)A(X)", BoxPlus(operator(1_000, 2_000, closed_end=False), Atom("A", (X,)))),
    ("Boxplus[1,2]Boxplus(0,1]A(X)", BoxPlus(operator(1_000, 3_000, closed_start=False), Atom("A", (X,)))),
]


@pytest.mark.parametrize(("text", "head"), HEADS, ids=[text for text, _ in HEADS])
def test_heads(text: str, head: Head) -> None:
    assert rule(f"{text}:-B(X)").head == head


FACTS = [
    ("B(a)@[1,3)", "B", ('"a"',), seconds(1, 3, closed_high=False)),
    ("B(a)@2", "B", ('"a"',), seconds(2, 2)),
    ("B(a)@[1,1]", "B", ('"a"',), seconds(1, 1)),
    ("B(a)@[1]", "B", ('"a"',), seconds(1, 1)),
    ("B(a,b)@(1,2.5]", "B", ('"a"', '"b"'), seconds(1, 2.5, closed_low=False)),
    ("B @ -1.9", "B", (), seconds(-1.9, -1.9)),
    ("B@(-inf,+inf)", "B", (), ALWAYS),
    ("B@[5,inf)", "B", (), Interval(10_000, MAX)),
    ("B@(-inf,5)", "B", (), Interval(MIN, 9_999)),
    ("B@7/4", "B", (), seconds(1.75, 1.75)),
    ("B@1.5e1.", "B", (), seconds(15, 15)),
    # Every name in a fact is a constant, as in MeTeoR's data of LUBM.
    ("UndergraduateStudent(ID0)@[1,18]", "UndergraduateStudent", ('"ID0"',), seconds(1, 18)),
    ("name(ID8,id-9,2ab, v1.2)@1", "name", ('"ID8"', '"id-9"', '"2ab"', '"v1.2"'), seconds(1, 1)),
    ("OnLane(veh12,_,_)@[6,6]", "OnLane", ('"veh12"', '"_"', '"_"'), seconds(6, 6)),
    ("a1:FullProfessor(ID3)@[7,7]", "a1:FullProfessor", ('"ID3"',), seconds(7, 7)),
    ("a1:takesCourse(ID34,a1:ID4)@46", "a1:takesCourse", ('"ID34"', '"a1:ID4"'), seconds(46, 46)),
    ("speed(v1, 30)@1", "speed", ('"v1"', integer("30").token), seconds(1, 1)),
    ("known(a)", "known", ('"a"',), ALWAYS),
    ("same(_:b1)@1", "same", ("_:b1",), seconds(1, 1)),
]


@pytest.mark.parametrize(("text", "name", "terms", "when"), FACTS, ids=[row[0] for row in FACTS])
def test_facts(text: str, name: str, terms: tuple[str, ...], when: Interval) -> None:
    assert fact(text) == Fact(Atom(name, tuple(map(Constant, terms))), when)


def test_rules_and_facts_stand_in_any_order_one_a_line() -> None:
    found = parse_datalogmtl("B(a)@[1,3)\nA(X):-B(X), Boxminus[1,1]C(X)\n\n% a comment\nB(a)@2 . C(b)@1.\nD(X)\n  :- A(X),\n  B(X)\r\n",
                             "test")
    assert [(r.span.line, r.span.end_line) for r in found.rules if r.span] == [(2, 2), (6, 8)]
    assert [f.atom.predicate for f in found.facts] == ["B", "B", "C"]


def test_lines_before_the_rules() -> None:
    found = parse_datalogmtl(f"PREFIX ex: <{EX}>\nUNIT 1 min\nFROM STREAM ex:s\nFROM <{EX}g>\nA(X):-Diamondminus[0,1.5]B(X)\nB(a)@1",
                             "test")
    assert found.imports == (Import(f"{EX}s", STREAM), Import(f"{EX}g", SIMPLE))
    assert found.unit_ms == 60_000
    assert found.rules[0].body == (DiamondMinus(operator(0, 90_000), B_OF_X),)
    assert found.facts[0].interval == seconds(60, 60)


@pytest.mark.parametrize(("unit", "ms"), [("1 ms", 1), ("1 sec", 1_000), ("s", 1_000), ("0.5 s", 500), ("10 min", 600_000),
                                          ("1 h", 3_600_000), ("2 days", 172_800_000)])
def test_units(unit: str, ms: int) -> None:
    assert parse_datalogmtl(f"UNIT {unit}", "test").unit_ms == ms


def test_terms_and_triples() -> None:
    found = rule(f'PREFIX ex: <{EX}>\nex:hot(X) :- ex:at(X,ex:b), triple(X,P,"x"@en), C("Big",30,1.5,1e3,true,a,<{EX}c>), '
                 f'<{EX}n>(X,Y,a), ex:z')
    at, n, c = (Constant(f"<{EX}{name}>") for name in ("at", "n", "c"))
    assert found.head == Atom(TRIPLE, (X, Constant(RDF_TYPE), Constant(f"<{EX}hot>")))
    assert found.body == (
        Atom(TRIPLE, (X, at, Constant(f"<{EX}b>"))), Atom(TRIPLE, (X, Variable("P"), Constant('"x"@en'))),
        Atom("C", (Constant('"Big"'), integer("30"), Constant(f'"1.5"^^<{XSD}decimal>'), Constant(f'"1e3"^^<{XSD}double>'),
                   Constant(f'"true"^^<{XSD}boolean>'), A, c)), Atom(n.token, (X, Y, A)), Atom(f"<{EX}z>", ()))


def test_without_prefixes_a_name_with_a_colon_is_a_name() -> None:
    """As in MeTeoR's programs of LUBM."""
    found = rule("a1:Scientist(X):- Diamondminus[1,1]a1:FullProfessor(X), a1:worksFor(X,a1:d)")
    assert found.head == Atom("a1:Scientist", (X,))
    assert found.body == (DiamondMinus(operator(1_000, 1_000), Atom("a1:FullProfessor", (X,))),
                          Atom("a1:worksFor", (X, Constant('"a1:d"'))))


def test_comparisons_arithmetic_and_negation() -> None:
    found = rule("A(X,Z) :- B(X), Z = X * 2 + 1, Z > 3, not Diamondminus[0,1]C(X)")
    z = Variable("Z")
    assert found.body == (B_OF_X, Assign(z, Call("+", (Call("*", (X, integer("2"))), integer("1")))),
                          Condition(Call(">", (z, integer("3")))), Negation(DiamondMinus(operator(0, 1_000), Atom("C", (X,)))))


# ---------------------------------------------------------------------- what it means


def held(program: str, facts: str, until: float | None = None) -> list[str]:
    """What follows, a line a fact, without the facts themselves."""
    rules, given_facts = parse_datalogmtl(program, "test"), parse_facts(facts)
    model = evaluate(rules, given_facts, None if until is None else int(until * 1_000))
    heads = {atom.predicate for r in rules.rules for atom in atoms(r.head)}
    return print_facts(Fact(Atom(name, tuple(map(Constant, terms))), when) for (name, terms), intervals in model.facts.items()
                       if name in heads for when in intervals).splitlines()


MEANINGS = [
    # fractional time stamps and bounds are exact
    ("C(X):-A(X), Diamondminus[1,1]B(X)", "B(a)@1.9\nA(a)@2.5", []),
    ("C(X):-A(X), Diamondminus[0.6,0.6]B(X)", "B(a)@1.9\nA(a)@2.5", ["C(a)@2.5"]),
    ("C(X):-A(X), Diamondminus(0.6,1]B(X)", "B(a)@1.9\nA(a)@2.5", []),
    ("C(X):-Diamondminus[0.1,0.2)A(X)", "A(a)@(0,0.7]", ["C(a)@(0.1,0.9)"]),
    # facts with intervals
    ("C(X):-Boxminus[0,2]A(X)", "A(a)@[1,9]", ["C(a)@[3,9]"]),
    ("C(X):-Boxminus[0,2)A(X)", "A(a)@(1,9)", ["C(a)@[3,9)"]),
    ("C(X):-Boxminus[0,2]A(X)", "A(a)@[1,2)\nA(a)@[2,3.5]", ["C(a)@[3,3.5]"]),
    ("C(X):-Boxminus[0,2]A(X)", "A(a)@[1,2)\nA(a)@(2,3.5]", []),
    # nested operators
    ("C(X):-Boxminus[0,4]Diamondminus[0,2]A(X)", "A(a)@1\nA(a)@3\nA(a)@5\nA(b)@1\nA(b)@4", ["C(a)@[5,7]"]),
    ("C(X):-Diamondminus[1,2]Boxminus[0,1]A(X)", "A(a)@[0,3]", ["C(a)@[2,5]"]),
    ("Boxplus[1,2]Boxplus[0,1)C(X):-A(X)", "A(a)@5", ["C(a)@[6,8)"]),
    # unbounded look-back, and what lasts for ever
    ("C(X):-A(X), Diamondminus[0,inf)B(X)", "B(a)@1\nA(a)@1000000\nA(a)@0.999", ["C(a)@1000000"]),
    ("C(X):-Diamondminus[2,inf)B(X)", "B(a)@1.5", ["C(a)@[3.5,inf)"]),
    ("Boxplus[0,inf)C(X):-B(X)", "B(a)@1.5", ["C(a)@[1.5,inf)"]),
    ("C(X):-Boxminus[1,inf)B(X)", "B(a)@[0,inf)\nB(b)@(-inf,4]", ["C(b)@(-inf,5]"]),
    # derived facts between input time points
    ("A(X):-Diamondminus[1,1]B(X)", "B(a)@1\nB(b)@5", ["A(a)@2", "A(b)@6"]),
    ("A(X):-Diamondminus[0.5,0.5]B(X)\nC(X):-Diamondminus[0.25,0.25]A(X)", "B(a)@1\nB(a)@5",
     ["A(a)@1.5", "A(a)@5.5", "C(a)@1.75", "C(a)@5.75"]),
    # negation is of the moment
    ("C(X):-A(X), not Diamondminus[0,1]B(X)", "A(a)@[0,5]\nB(a)@2", ["C(a)@(3,5]", "C(a)@[0,2)"]),
]


@pytest.mark.parametrize(("program", "facts", "expected"), MEANINGS, ids=[f"{row[0]} {row[1].splitlines()[0]}" for row in MEANINGS])
def test_meanings(program: str, facts: str, expected: list[str]) -> None:
    assert sorted(held(program, facts)) == expected


def test_recursion_through_time() -> None:
    assert held("Boxplus[1,1]A(X):-A(X), B", "A(a)@0.5\nB@[0,3]", until=9) == ["A(a)@0.5", "A(a)@1.5", "A(a)@2.5", "A(a)@3.5"]
    assert held("A(X):-Diamondminus[0,1]A(X)", "A(a)@2", until=9) == ["A(a)@[2,9]"]


def test_the_papers_network_of_monitors() -> None:
    """Example 1: a flag comes when a signal came often enough, and makes the neighbours monitor it for three seconds."""
    program = "Flag(X,Z) :- Monit(X,Z), Boxminus[0,4]Diamondminus[0,2]Signal(Z)\nBoxplus[0,3]Monit(X,Z) :- Flag(Y,Z), Connect(X,Y)"
    facts = "Connect(m,n)\nMonit(n,s1)@[0,6]\nSignal(s1)@0\nSignal(s1)@2\nSignal(s1)@4\nSignal(s1)@5.5"
    assert held(program, facts, until=20) == ["Flag(m,s1)@[4,7.5]", "Flag(n,s1)@[4,6]", "Monit(m,s1)@[4,9]", "Monit(n,s1)@[0,6]"]


def test_the_papers_short_stops() -> None:
    """A vehicle that stands for one to four points of time, between two of moving."""
    stands = {"v1": [3], "v2": [3, 4, 5, 6], "v3": [3, 4, 5, 6, 7], "v4": [0, 1], "v5": []}
    facts = "\n".join(f"Speed_{0 if t in when else 'n'}({name})@{t}" for name, when in stands.items() for t in range(10))
    assert [line for line in held(SHORT_STOP, facts) if line.startswith("Short")] == ["ShortStop(v1)@4", "ShortStop(v2)@7"]
    assert held(SHORT_STOP, "NotOnMap(w)@2\nSpeed_0(w)@1\nSpeed_n(w)@0")[0] == "ShortStop(w)@2"


# ---------------------------------------------------------------------- what is refused


def refused(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(DiagnosticError) as error:
        parse_datalogmtl(text, "test")
    return error.value.diagnostics


NOT_FORWARD, SYNTAX, UNSAFE = "rules-not-forward", "rule-syntax", "rules-unsafe"
REFUSED = [
    ("A(X):-«Boxplus»[1,2]B(X)", NOT_FORWARD, "The rule for A (line 1) is not forward-propagating: Boxplus in its body"),
    ("A(X):-«Diamondplus»[1,2]B(X)", NOT_FORWARD, "looks at what is yet to come"),
    ("A(X):-B(X), Boxminus[0,1]«SOMETIME»[0,1]B(X)", NOT_FORWARD, "SOMETIME in its body looks at what is yet to come"),
    ("A(X):-B(X), not «ALWAYS»[1,2]B(X)", NOT_FORWARD, "ALWAYS in its body"),
    ("A(X):-«<+>»[1,2]B(X)", NOT_FORWARD, "<+> in its body"),
    ("A(X):-B(X)«Since»[1,2]C(X)", NOT_FORWARD, "Since is none of its operators"),
    ("A(X):-B(X) «Until»[1,2]C(X)", NOT_FORWARD, "Until looks at what is yet to come"),
    ("A:-B«Since»[1,2]C", NOT_FORWARD, "Since is none"),
    ("A:-B«UNTIL»[-2,-1]C", NOT_FORWARD, "UNTIL"),
    ("«Boxminus»[1,2]A(X):-B(X)", NOT_FORWARD, "Boxminus in its head derives what held before"),
    ("Boxplus[0,1]«Diamondminus»[1,2]A(X):-B(X)", NOT_FORWARD, "Diamondminus in its head derives what held before"),
    ("«Diamondplus»[1,2]A(X):-B(X)", NOT_FORWARD, "without saying when"),
    ("A(X):-B(X), «Top»", NOT_FORWARD, "Top stands in no such rule"),
    ("«Bottom»:-B(X)", NOT_FORWARD, "Bottom stands in no such rule"),
    ("A(X):-Diamondminus«[-1,2]»B(X)", SYNTAX, "begins before 0"),
    ("A(X):-Diamondminus«[2,1]»B(X)", SYNTAX, "reversed"),
    ("A(X):-Diamondminus«[1,1)»B(X)", SYNTAX, "empty: its ends are equal"),
    ("A(X):-SOMETIME«[-1,1]»B(X)", SYNTAX, "begins before 0"),
    ("Boxplus«(1,1]»A(X):-B(X)", SYNTAX, "empty"),
    ("A(X):-Diamondminus«(inf,inf)»B(X)", SYNTAX, "lies at infinity"),
    ("A(X):-Diamondminus«[0,1/3]»B(X)", SYNTAX, "no whole number of milliseconds: 1/3 of a unit of 1s"),
    ("A(X):-Diamondminus«[0,0.0005]»B(X)", SYNTAX, "no whole number of milliseconds"),
    ("A(X):-Diamondminus«[0,1e12]»B(X)", SYNTAX, "more than 1,000 years"),
    ("A(X):-Diamondminus[0,«1e999999999»]B(X)", SYNTAX, "This number is no time"),
    ("A(X):-Diamondminus[0,«1/0»]B(X)", SYNTAX, "This number is no time"),
    ("A(a)@«[3,1]»", SYNTAX, "reversed"),
    ("A(a)@«(1,1)»", SYNTAX, "empty"),
    ("A(a)@«1e13»", SYNTAX, "years 1 to 9999"),
    ("A(a)@«1.0001»", SYNTAX, "no whole number of milliseconds"),
    ("A(a)@«inf»", SYNTAX, "lies at infinity"),
    ("«Boxplus»[1,2]A(a)@1", SYNTAX, "A fact has no operators"),
    ("A(«X»):-B(Y)", UNSAFE, "Nothing binds X"),
    ("A(X):-B(X), not C(X,«Y»)", UNSAFE, "Nothing binds Y"),
    ("A(X):-B(X), «Y» > 3", UNSAFE, "Nothing binds Y"),
    ("A(«X»)", UNSAFE, "a fact has no variables"),
    ("A(«?x»)@1", UNSAFE, "a fact has no variables"),
    ("A(X):-B(X),C(«_:b»)", SYNTAX, "A rule has no blank nodes"),
    ("«A(X):-B(X),not C(X)»\nC(X):-A(X)", UNSAFE, "A -> C -> A"),
    ("A(X):-B(X«»", SYNTAX, "The line ends too early: expected ',' or ')'"),
    ("A(X):-«»", SYNTAX, "The line ends too early"),
    ("A(X)«<-»B(X)", SYNTAX, "Expected ':-', '@' or the end of the line"),
    ("A(X):-B(X)«@»1", SYNTAX, "Expected the end of the line"),
    ("A(X):-B(X) «C»(X)", SYNTAX, "Expected the end of the line"),
    ("A(X):-Diamondminus «B»(X)", SYNTAX, "Expected an interval such as [0,5]"),
    ("A(X):-Diamondminus[0,1«B»(X)", SYNTAX, "Expected ']' or ')'"),
    (f"PREFIX e: <{EX}>\nA(X):-«ex:»p(X)", SYNTAX, "Unknown prefix 'ex:'"),
    ("FROM STREAM «ex:»s", SYNTAX, "Unknown prefix 'ex:'"),
    ("«triple(a,b)»@1", SYNTAX, "triple takes 3 arguments"),
    ("A(a)@1\n«UNIT» 1 sec", SYNTAX, "UNIT stands before the first rule or fact, that of line 1"),
    ("UNIT 1 «(»", SYNTAX, "Expected ms, sec, min, h or d"),
    ("«UNIT 1 parsec»", SYNTAX, "parsec"),
    ("«UNIT 0.0001 s»", SYNTAX, "not a whole number of milliseconds"),
    ("«UNIT 0 s»", SYNTAX, "A unit of no length"),
    ("UNIT 1 s\n«UNIT» 2 s\nA(a)@1", SYNTAX, "given twice"),
]


@pytest.mark.parametrize(("marked", "code", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals(marked: str, code: str, message: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    found = refused(text)[0]
    assert (found.code, message in found.message) == (code, True), found.render()
    assert found.span is not None and (found.span.source, found.span.start, found.span.end) == (text, start, end), found.render()


def test_all_mistakes_are_told_in_the_order_of_the_text() -> None:
    found = refused("A(X):-Boxplus[1,2]B(X), Diamondminus[2,1]C(X)\nA(a)@[1,\nA(X):-B(Y)\n\nB(X):-C(X)Since[1,2]D(X)\nC(a)@1 2\n")
    assert [(d.span.line if d.span else 0, d.code) for d in found] == [
        (1, NOT_FORWARD), (1, SYNTAX), (2, SYNTAX), (3, UNSAFE), (5, NOT_FORWARD), (6, SYNTAX)]


def test_refused_rules_say_what_is_allowed() -> None:
    found = refused("A(X):-Boxplus[1,2]B(X)")[0]
    assert found.note is not None and "Diamondminus and Boxminus in bodies, Boxplus in heads" in found.note


def test_facts_by_themselves_tell_the_line() -> None:
    with pytest.raises(DiagnosticError) as error:
        parse_facts("A(a)@1\n  A(b)@[2,1]\n\nA(X):-B(X)\nA(c@1\n")
    assert [(d.span.line, d.span.column) for d in error.value.diagnostics if d.span] == [(2, 8), (4, 1), (5, 4)]


def test_facts_have_their_head_lines_too() -> None:
    assert parse_facts(f"PREFIX ex: <{EX}>\nUNIT 1 h\nex:p(ex:a,1)@2\n\nB@1") == [
        Fact(Atom(TRIPLE, (Constant(f"<{EX}a>"), Constant(f"<{EX}p>"), integer("1"))), seconds(7_200, 7_200)),
        Fact(Atom("B", ()), seconds(3_600, 3_600))]


@given(st.text("Aa1-.,()@[]inf+ _t", max_size=12).map(lambda tail: f"A{tail}"))
def test_the_quick_way_to_read_a_fact_is_the_long_way(line: str) -> None:
    quick = _quick(line, 1_000)
    if quick is not None:
        reader = Reader(Report(line))
        assert list(reader.clauses()) == [quick] and not reader.report.diagnostics
