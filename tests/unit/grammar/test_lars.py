"""LARS programs: what their texts mean, what is refused and where, and what follows from them by the reference evaluator."""

from __future__ import annotations

import pytest

from engine.ir.expressions import Call
from engine.ir.rules import (SIMPLE, STREAM, TRIPLE, Assign, At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Import, Negation, Rule,
                             RuleSet, Test as Condition, WindowFormula)
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.terms import RDF_TYPE, XSD, Constant, Term, Variable
from engine.reference.temporal import evaluate
from engine.timeline import ALWAYS, MAX, Interval, granule, operator
from grammar.lars.parse import parse_lars
from grammar.rule_sets import parse_rules
from grammar.rule_text import MAX_LENGTH
from grammar.terms import literal

S = 1_000
EVER = Interval(0, MAX)
X, Y, Z, T = map(Variable, "XYZT")
PREFIX = "PREFIX ex: <http://ex.org/>\n"


def p(*terms: Term, name: str = "p") -> Atom:
    return Atom(name, terms or (X,))


def only(text: str) -> Rule:
    rule, = parse_lars(text, "test").rules
    return rule


def body(part: str) -> Formula:
    """The one part of a body in which X, Y and T are bound besides."""
    return only(f"q(X) <- b(X, Y, T), {part}.").body[1]


def term(text: str) -> Term:
    return parse_lars(f"p({text}) <- v({text}).", "test").rules[0].body[0].terms[0]     # type: ignore[union-attr]


# ---------------------------------------------------------------------- syntax


@pytest.mark.parametrize(("text", "formula"), [
    ("p(X)", p()), ("p", Atom("p", ())), ("p()", Atom("p", ())), ("p(X, a, Y)", p(X, literal("a"), Y)), ("Big(X)", p(name="Big")),
    ("diamond p(X)", DiamondMinus(EVER, p())), ("◇ p(X)", DiamondMinus(EVER, p())), ("Box p(X)", BoxMinus(EVER, p())),
    ("□p(X)", BoxMinus(EVER, p())), ("[3] diamond p(X)", DiamondMinus(operator(0, 3 * S), p())),
    ("[10 sec] box p(X)", BoxMinus(operator(0, 10 * S), p())), ("[0] box p(X)", BoxMinus(operator(0, 0), p())),
    ("[2000 ms] diamond p(X)", DiamondMinus(operator(0, 2 * S), p())), ("[2 min] diamond p(X)", DiamondMinus(operator(0, 120 * S), p())),
    ("[1h] diamond p(X)", DiamondMinus(operator(0, 3600 * S), p())), ("[1.5 minutes] diamond p(X)", DiamondMinus(operator(0, 90 * S), p())),
    ("@T p(X)", At(T, p())), ("@5 p(X)", At(literal("5", f"{XSD}integer"), p())), ("@-5 p(X)", At(literal("-5", f"{XSD}integer"), p())),
    ("[3] @T p(X)", WindowFormula("time", 3, At(T, p()))), ("[3] p(X)", WindowFormula("time", 3, p())),
    ("[5 #] diamond p(X)", WindowFormula("tuple", 5, DiamondMinus(EVER, p()))), ("[#5] @T p(X)", WindowFormula("tuple", 5, At(T, p()))),
    ("[5#] p(X)", WindowFormula("tuple", 5, p())), ("not p(X)", Negation(p())),
    ("NOT [3] box p(X)", Negation(BoxMinus(operator(0, 3 * S), p()))),
    ("X >= 3", Condition(Call(">=", (X, literal("3", f"{XSD}integer"))))), ("X != a", Condition(Call("!=", (X, literal("a"))))),
    ("X = Y", Condition(Call("=", (X, Y)))), ("Z = X + Y * 2", Assign(Z, Call("+", (X, Call("*", (Y, literal("2", f"{XSD}integer"))))))),
    ("X - Y - 1 = Z", Assign(Z, Call("-", (Call("-", (X, Y)), literal("1", f"{XSD}integer"))))),
    ("Z = X - (Y - -1)", Assign(Z, Call("-", (X, Call("-", (Y, literal("-1", f"{XSD}integer"))))))),
    ("Z = -X/(2)", Assign(Z, Call("/", (Call("U-", (X,)), literal("2", f"{XSD}integer"))))),
    ("X<3", Condition(Call("<", (X, literal("3", f"{XSD}integer"))))),
    ("triple(X, Y, T)", Atom(TRIPLE, (X, Y, T))), ("<http://ex.org/p>(X, 1)", Atom(TRIPLE, (X, Constant("<http://ex.org/p>"), term("1")))),
    ("<urn:C>(X)", Atom(TRIPLE, (X, Constant(RDF_TYPE), Constant("<urn:C>")))), ("<urn:r>(X, Y, 1)", Atom("<urn:r>", (X, Y, term("1")))),
    ("<urn:r>", Atom("<urn:r>", ())), ("true", Atom("true", ())),
])
def test_parts_of_bodies(text: str, formula: Formula) -> None:
    assert body(text) == formula


@pytest.mark.parametrize(("text", "token"), [
    ("a", '"a"'), ('"A b"', '"A b"'), ("'it is \"so\"'", '"it is \\"so\\""'), ('"a\\n\\u00e9"', '"a\\né"'), ('"x"@EN-gb', '"x"@en-gb'),
    ('"x"^^<urn:t>', '"x"^^<urn:t>'), (f'"x"^^<{XSD}string>', '"x"'), ("1", f'"1"^^<{XSD}integer>'), ("+01", f'"+01"^^<{XSD}integer>'),
    ("-9.099", f'"-9.099"^^<{XSD}decimal>'), ("1e6", f'"1e6"^^<{XSD}double>'), ("true", f'"true"^^<{XSD}boolean>'), ("<urn:a>", "<urn:a>"),
    ("über", '"über"'),
])
def test_constants_are_tokens(text: str, token: str) -> None:
    assert term(text) == Constant(token)


def test_variables() -> None:
    assert [term(text) for text in ("Xyz", "?x", "?X", "Éa")] == [Variable(name) for name in ("Xyz", "x", "X", "Éa")]


@pytest.mark.parametrize("text", [
    "q(X) <- p(X), r(X).", "q(X) :- p(X) and r(X).", "q(X) ← p(X) && r(X) .", "q(X):-p(X),r(X).% a comment",
    "% a (comment.\nq(X)<-p(X)AND r(X).",
    "\ufeffq(X) <- p(X),\n r(X)\n.",
])
def test_ways_to_write_a_rule(text: str) -> None:
    assert only(text) == Rule(p(name="q"), (p(), p(name="r")))


def test_heads_and_facts() -> None:
    found = parse_lars("@T q(X) <- @T p(X). @5 q(a) <- p(a). p(a). @-2 p(1). p. p:-q. p(1).q(1.5).", "test")
    five = literal("5", f"{XSD}integer")
    assert found.rules == (Rule(At(T, p(name="q")), (At(T, p()),)), Rule(At(five, p(literal("a"), name="q")), (p(literal("a")),)),
                           Rule(Atom("p", ()), (Atom("q", ()),)))
    assert found.facts == (Fact(p(literal("a")), ALWAYS), Fact(p(term("1")), granule(-2, S)), Fact(Atom("p", ()), ALWAYS),
                           Fact(p(term("1")), ALWAYS), Fact(p(term("1.5"), name="q"), ALWAYS))


def test_lines_before_the_rules() -> None:
    found = parse_lars("""start at 4 Granularity 500 ms
        PREFIX ex: <http://ex.org/> FROM STREAM ex:s
        FROM <http://ex.org/g>
        FROM STREAM <http://ex.org/t>
        ex:C(X) <- [1500 ms] diamond ex:p(X, ex:a%20b).""", "test")
    head = Atom(TRIPLE, (X, Constant(RDF_TYPE), Constant("<http://ex.org/C>")))
    atom = Atom(TRIPLE, (X, Constant("<http://ex.org/p>"), Constant("<http://ex.org/a%20b>")))
    imports = (Import("http://ex.org/s", STREAM), Import("http://ex.org/g", SIMPLE), Import("http://ex.org/t", STREAM))
    assert found == RuleSet("test", (Rule(head, (DiamondMinus(operator(0, 1500), atom),)),), (), 500, 2_000, imports)
    written = ["FROM STREAM ex:s", "FROM <http://ex.org/g>", "FROM STREAM <http://ex.org/t>"]
    assert [imp.span.text for imp in found.imports if imp.span] == written


@pytest.mark.parametrize(("written", "start"), [
    ('"1970-01-01T00:00:05Z"', 5_000), ('"1970-01-01T00:00:05.900Z"', 5_000), (f'"1970-01-01T01:00:00+01:00"^^<{XSD}dateTime>', 0),
    ("-7", -7_000),
])
def test_the_start_of_the_timeline_is_a_granule(written: str, start: int) -> None:
    assert parse_lars(f"START AT {written}\np.", "test").start_at_ms == start


def test_the_empty_prefix() -> None:
    assert only("PREFIX : <urn:> :p(X, :a):-:q(X, :).").head == Atom(TRIPLE, (X, Constant("<urn:p>"), Constant("<urn:a>")))


def test_words_of_the_first_lines_are_predicates_elsewhere() -> None:
    found = parse_lars("from(a, b). start. prefix <- granularity, from(X, Y).", "test")
    assert [fact.atom.predicate for fact in found.facts] == ["from", "start"] and found.rules[0].head == Atom("prefix", ())


def test_an_equality_assigns_what_nothing_else_binds() -> None:
    rule = only("q(A, B, C) <- C = B + 1, B = A + 1, p(A), C = B + 1, 7 = A.")
    assert [type(part) for part in rule.body] == [Assign, Assign, Atom, Condition, Condition]


def test_rule_sets_are_read_by_their_type() -> None:
    assert parse_rules("q(X) <- p(X).", "text/x-lars", "a") == parse_lars("q(X) <- p(X).", "a")
    assert parse_rules("Document(Group(<urn:p>(1)))", "text/x-rif-ps", "b").facts
    with pytest.raises(ValueError, match="text/plain"):
        parse_rules("q(X) <- p(X).", "text/plain", "a")


# ---------------------------------------------------------------------- mistakes


def refused(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(DiagnosticError) as caught:
        parse_lars(text, "test")
    return caught.value.diagnostics


# The mistake is between the guillemets; then a part of the message, and of the hint.
MISTAKES = [
    # windows
    ("q(X) <- [3] «[»2] diamond p(X).", "Nested windows", "a rule of its own"),
    ("q(X) <- [3] diamond «box» p(X).", "operator under an operator", "a rule of its own"),
    ("q(X) <- [3] diamond «@»T p(X).", "operator under an operator", "a rule of its own"),
    ("q(X) <- @T «diamond» p(X).", "operator under an operator", "a rule of its own"),
    ("q(X) <- diamond «[»3] p(X).", "window under an operator", "[3] diamond p(X)"),
    ("q(X) <- [3] diamond «not» p(X).", "'not' under an operator", "not [w] box p"),
    ("q(X) <- [3] «not» p(X).", "'not' under a window", "not [w] box p"),
    ("q(X) <- [3] box «(»p(X), r(X)).", "Brackets under an operator", "both(X) <- p(X), q(X)."),
    ("q(X) <- not «(»p(X), r(X)).", "Brackets under 'not'", "both(X) <- p(X), q(X)."),
    ("q(X) <- «[-3]» diamond p(X).", "not negative", "[10 sec]"),
    ("q(X) <- «[-10 sec]» diamond p(X).", "not negative", "[10 sec]"),
    ("q(X) <- «[]» diamond p(X).", "A window has a size", "[3] (granules)"),
    ("q(X) <- «[0 #]» diamond p(X).", "A window of tuples has 1 to 1000000", "[5 #]"),
    ("q(X) <- «[1000001 #]» diamond p(X).", "A window of tuples has 1 to 1000000", "[5 #]"),
    ("q(X) <- «[1.5]» diamond p(X).", "A window of granules", "[3]"),
    ("q(X) <- «[99999999999999999999]» diamond p(X).", "A window of granules", "[3]"),
    ("q(X) <- «[1500 ms]» diamond p(X).", "no whole number of granules of 1000 ms", "GRANULARITY 100 ms"),
    ("q(X) <- «[400000 d]» diamond p(X).", "longer than 1,000 years", "1d"),
    ("q(X) <- «[10 parsecs]» diamond p(X).", "Unknown unit 'parsecs'", "units are ms, s"),
    ("q(X) <- [10 sec «diamond» p(X).", "Expected ']'", "[10 sec]"),
    ("q(X) <- [«D»] p(X).", "Expected the size of a window", None),
    ("q(X) <- «⊞» diamond p(X).", "Expected a window in brackets", "[3]"),
    ("q(X) <- p(X). r(X) <- «[5 #]» diamond q(X).", "A tuple window counts what the stream brings, and q(X) is derived", "time window"),
    ("<urn:p>(X, X) <- r(X). s(X) <- «[5 #]» @T triple(X, Y, X).", "A tuple window counts", "time window"),
    # @
    ("q(X) <- @«a» p(X).", "@ takes a variable or the number of a granule, found a", "@T p(X), or @5 p(X)"),
    ("q(X) <- @«1.5» p(X).", "found 1.5", "@5 p(X)"),
    ("@«\"5\"» q(X) <- p(X).", "found \"5\"", "@5 p(X)"),
    ("q(X) <- @«.»", "Expected a variable or the number of a granule", "@T p(X)"),
    ("q(X) <- @T«+»1 p(X).", "Expected an atom", "U = T + 1"),
    ("@«999999999999» p(a).", "not within the years 1 to 9999", "1970"),
    # heads
    ("«[»3] q(X) <- p(X).", "A window in a head", "@T p(X)"),
    ("«diamond» q(X) <- p(X).", "diamond in a head", "@T p(X)"),
    ("«not» q(X) <- p(X).", "Negation in a head", "@T p(X)"),
    ("q(X)«,» r(X) <- p(X).", "Expected '<-' or '.'", "one atom"),
    ("«<-» p(X).", "Expected a head", "derive an atom"),
    ("q(X) «:=» p(X).", "Expected '<-' or '.'", "head <- body."),
    ("q(X) <- p(X)\n«r»(X) <- p(X).", "Expected ',' or '.'", "ends with a dot"),
    ("q(X) <- «.»", "Expected an atom", None),
    ("q(X) <- p(X)«»", "The text ends too early: expected ',' or '.'", None),
    ("«»", "The text has no rule", "<-"),
    # predicates and terms
    ("«box»(X) <- p(X).", "'box' is a word of LARS", "another name"),
    ("q(X) <- p(X), «and».", "'and' is a word of LARS", "another name"),
    ("«triple(X, Y)» <- p(X, Y).", "triple takes 3 arguments", "another name"),
    ("q(X) <- p(X), «triple(X)».", "triple takes 3 arguments", "another name"),
    ("q(X) <- p(f«(»X)).", "Expected ',' or ')'", "no function terms"),
    ("q(X) <- p(X«+»1).", "Expected ',' or ')'", "Z = X + 1"),
    ("q(X) <- p(X, «_»).", "'_' is no term", "upper-case"),
    ("q(X) <- p(X), X = «\"a)»\n.", "Expected a variable, a constant or '('", "never closed"),
    ("q(X) <- p(X, «ex:»a).", "Unknown prefix 'ex:'", "PREFIX ex:"),
    ("q(X) <- p(X, «foaf:»a).", "Unknown prefix 'foaf:'", "http://xmlns.com/foaf/0.1/"),
    ("q(X) <- p(X, \"a\"«@abcdefghi»).", "no language tag", "eight"),
    ("q(X) <- p(X, «<»a>).", "Expected a term", "begin"),
    # comparisons
    ("q(X) <- p(X), X «==» 3.", "Expected an operator", "written ="),
    ("q(X) <- p(X), X «<>» 3.", "Expected an operator", "!="),
    ("q(X) <- p(X), X «<-»3.", "Expected ',' or '.'", "a space"), ("q(X) <- p(X), 3 «<-»3.", "Expected an operator", "a space"),
    ("q(X) <- p(X), 1 < X «<» 3.", "Expected ',' or '.'", "1 < X, X < 3"),
    ("q(X) <- p(X), not «X» = 3.", "'not' before a comparison", "!="),
    ("q(X) <- p(X), not «not» p(X).", "'not' under 'not'", "both"),
    ("q(X) <- p(X)«;» r(X).", "Expected ',' or '.'", "each alternative"),
    ("q(X) <- p(X) «or» r(X).", "Expected ',' or '.'", "each alternative"),
    # aggregates and functions
    ("q(N) <- p(X), N = «count»(X).", "The aggregate count", None),
    ("q(N) <- p(X), N = «#»count{X : p(X)}.", "Expected a variable", "aggregates"),
    ("q(X) <- p(X), count(X) «>» 3.", "Expected ',' or '.'", "aggregates"),
    ("q(N) <- p(X), N = «abs»(X).", "The function abs", "+ - * /"),
    # the lines before the rules
    ("PREFIX «ex» <http://ex.org/>\np.", "Expected a prefix with its colon", "PREFIX ex: <http://ex.org/>"),
    ("PREFIX ex: «ex:a»\np.", "Expected an IRI", "angle brackets"),
    ("FROM «10»\np.", "Expected STREAM or an IRI", None),
    ("GRANULARITY «1\np».", "Unknown unit 'p'", None),
    ("GRANULARITY «0 sec»\np.", "longer than nothing", "GRANULARITY 1 sec"),
    ("GRANULARITY «0.1 ms»\np.", "whole number of milliseconds", None),
    ("GRANULARITY 1 sec «GRANULARITY» 2 sec\np.", "given twice", "one"),
    ("START «5»\np.", "Expected AT", "START AT"),
    ("START AT «noon»\np.", "Expected an xsd:dateTime", "START AT"),
    ("START AT «\"noon\"»\np.", "not an xsd:dateTime", "START AT"),
    ("START AT «999999999999»\np.", "not within the years", None),
    ("p. «FROM» <urn:g>", "FROM stands before the rules", "begin"),
]
UNSAFE = [
    ("q(X, «Y») <- p(X).", "Nothing binds Y", "an atom of the body"), ("q(«X») <- not p(X).", "Nothing binds X", "not under 'not'"),
    ("q(X) <- p(X), not r(X, «Y»).", "Nothing binds Y", None), ("q(X) <- p(X), X < «Y».", "Nothing binds Y", None),
    ("q(X) <- p(X), X + 1 = «Y» + 1.", "Nothing binds Y", None), ("q(«Y») <- p(X), Y = Z, Z = Y.", "Nothing binds Y", None),
    ("@«T» q(X) <- p(X).", "Nothing binds T", None), ("q(X) <- p(X), not @«T» p(X).", "Nothing binds T", None),
    ("p(«X»).", "a fact has no variables", "quotes"),
    ("@«T» p(a).", "a fact has no variables", None), ("q(«?x») <- p(?y).", "Nothing binds ?x", None),
    ("«q(X) <- p(X), not r(X).» r(X) <- p(X), [3] diamond q(X).", "cycle through negation: q -> r -> q", "'not'"),
    ("«p <- [3] box r, not [5] diamond p.»", "cycle through negation: p -> p", "'not'"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), MISTAKES + UNSAFE, ids=[marked for marked, _, _ in MISTAKES + UNSAFE])
def test_mistakes(marked: str, message: str, hint: str | None) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    found = refused(text)[0]
    assert found.span is not None
    assert (found.span.source, found.span.start, found.span.end) == (text, start, end), found.render()
    assert message in found.message, found.render()
    assert hint is None or (found.hint is not None and hint in found.hint), found.render()
    assert found.span.snippet() in found.render()


@pytest.mark.parametrize("marked", [marked for marked, _, _ in UNSAFE])
def test_what_is_not_safe_has_its_code(marked: str) -> None:
    assert {d.code for d in refused(marked.replace("«", "").replace("»", ""))} == {"rules-unsafe"}


def test_all_mistakes_are_told_in_the_order_of_the_text() -> None:
    found = refused("PREFIX ex <urn:>\nq(X) <- [1500 ms] diamond p(Y).\nex:q(X) <- ex:p(X).\nr(X) <- p(X) p(X).\n[3] s <- p.\n"
                    "t <- \"a.\nu <- f(1.\nv <- not v.")
    assert [(d.span.line, d.code) for d in found if d.span] == [
        (1, "rule-syntax"), (2, "rules-unsafe"), (2, "rule-syntax"), (4, "rule-syntax"), (5, "rule-syntax"), (6, "rule-syntax"),
        (7, "rule-syntax"), (8, "rules-unsafe")]


def test_no_more_than_twenty_are_told() -> None:
    assert len(refused("q(X) <- p(Y).\n" * 100)) == 20


@pytest.mark.parametrize(("text", "code", "place"), [
    ("p." + " " * MAX_LENGTH, "body-too-large", None), ("p <- q(X), Y = X" + " + 1" * 65 + ".", "nesting-too-deep", "."),
    ("p <- q(X), Y = " + "(" * 65 + "X" + ")" * 65 + ".", "nesting-too-deep", "X"),
    ("p <- q(X), Y = " + "- " * 65 + "X.", "nesting-too-deep", "-"), ('p("\ud800").', "rule-syntax", "\ufffd"),
])
def test_limits(text: str, code: str, place: str | None) -> None:
    found, = refused(text)
    assert (found.code, found.span.text if found.span else None) == (code, place), found.render()


# ---------------------------------------------------------------------- what follows


def held(text: str, until: int = 10) -> dict[str, list[int]]:
    """The granules at which each derived atom of a program with events of its own holds, as ``q("a")`` -> [1, 2]."""
    program = parse_lars("START AT 0\n" + text, "test")
    given = {fact.atom.predicate for fact in program.facts}
    found: dict[str, list[int]] = {}
    for k in range(until + 1):      # what holds at k, as it is known then
        for predicate, terms in evaluate(program, until_ms=k * S).at(2 * k * S):
            if predicate not in given:
                found.setdefault(f"{predicate}({','.join(t.split('^')[0].strip(chr(34)) for t in terms)})", []).append(k)
    return found


def test_recursion_through_windows() -> None:
    """Reached by hops of at most two time points; a step back into the rule's own past."""
    found = held("on(X) <- switch(X). on(X) <- [1] diamond on(X), power. @2 switch(a). @3 power. @4 power. @6 power.")
    assert found == {"on(a)": [2, 3, 4]}
    found = held("r(X, Y) <- [2] diamond e(X, Y). r(X, Z) <- r(X, Y), [2] diamond e(Y, Z). @0 e(a, b). @2 e(b, c). @3 e(c, d).", 5)
    assert found == {"r(a,b)": [0, 1, 2], "r(b,c)": [2, 3, 4], "r(a,c)": [2], "r(c,d)": [3, 4, 5], "r(b,d)": [3, 4]}


def test_constants_in_body_atoms() -> None:
    text = 'q(X) <- [1] diamond p(X, a, 1), r("b"). @0 p(x, a, 1). @0 p(y, b, 1). @0 p(z, a, 2). @0 p(w, a, "1"). @1 r(b). @0 r(c).'
    assert held(text) == {"q(x)": [1]}


def test_negation_per_binding() -> None:
    found = held("q(X) <- p(X), not [1] diamond r(X). @1 p(a). @1 p(b). @2 p(a). @2 p(b). @3 p(a). @0 r(b). @1 r(a). @1 s(b).", 4)
    assert found == {"q(a)": [3], "q(b)": [2]}


def test_negation_of_box_and_of_what_is_derived() -> None:
    assert held("q(X) <- p(X), not [1] box r(X). @0 r(a). @1 r(a). @3 r(a). @1 p(a). @2 p(a). @3 p(a).") == {"q(a)": [2, 3]}
    assert held("hot <- [1] diamond steam. calm <- not hot. @2 steam.", 5) == {"hot()": [2, 3], "calm()": [0, 1, 4, 5]}


def test_box_over_derived_atoms() -> None:
    found = held("q(X) <- [2] diamond p(X). z(X) <- [1] box q(X). @0 p(a).")
    assert found == {"q(a)": [0, 1, 2], "z(a)": [0, 1, 2]}


def test_box_over_the_last_tuples() -> None:
    """From the oldest tuple of the window on: at 3 the last two are a and b at 3; at 5 they are b at 3 and a at 5, nothing at 4."""
    found = held("q(X) <- [2 #] box p(X). d(X) <- [2 #] diamond p(X). @0 p(a). @1 p(a). @3 p(a). @3 p(b). @5 p(a).", 6)
    assert found["q(a)"] == [0, 1, 3] and found["q(b)"] == [3]
    assert found["d(a)"] == [0, 1, 2, 3, 4, 5, 6] and found["d(b)"] == [3, 4, 5, 6]


def test_background_data_are_in_every_window() -> None:
    found = held("q(X) <- [2 #] diamond p(X). s(X) <- [1] box p(X). p(a). @1 p(b). @2 p(c). @4 p(d).", 4)
    assert found == {"q(a)": [0, 1, 2, 3, 4], "s(a)": [0, 1, 2, 3, 4], "q(b)": [1, 2, 3], "q(c)": [2, 3, 4], "q(d)": [4]}


def test_triples_and_classes() -> None:
    text = PREFIX + "ex:Hot(S) <- [1] diamond ex:celsius(S, V), V > 90, not ex:Muted(S). @0 ex:celsius(ex:a, 95). @1 ex:Muted(ex:a)."
    program = parse_lars("START AT 0\n" + text, "test")
    hot = TRIPLE, ("<http://ex.org/a>", RDF_TYPE, "<http://ex.org/Hot>")
    assert [hot in evaluate(program, until_ms=k * S).at(2 * k * S) for k in range(3)] == [True, False, False]


def test_arithmetic_on_instants() -> None:
    found = held("@U later(X) <- [5] @T p(X), U = T + 2. age(D) <- @Now tick, [5] @T p(X), D = Now - T. @1 p(a). @4 tick.", 6)
    assert found == {"later(a)": [3], "age(3)": [4]}
