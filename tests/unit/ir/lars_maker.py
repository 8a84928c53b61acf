"""Random LARS programs, as their texts make them: for property tests of the printer, and wherever a program is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from engine.ir.expressions import Call, Expression
from engine.ir.rules import (SIMPLE, STREAM, TRIPLE, Assign, At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Import, Negation, Rule,
                             RuleSet, Test, WindowFormula, rule_variables)
from engine.ir.terms import RDF_TYPE, XSD, Constant, Term, Variable
from engine.timeline import ALWAYS, MAX, Interval, granule, operator
from grammar.terms import literal

EVER = Interval(0, MAX)
VARIABLES = [Variable(name) for name in ("X", "Y", "Time", "x", "\u00c9a", "_1")]
DERIVED, GIVEN = ("q", "isSteam", "<http://ex.org/d>", "TRIPLE"), ("p", "a_1", "\u00fc", "Big", "<http://ex.org/r>", TRIPLE)
_IRIS = [Constant(f"<{iri}>") for iri in ("http://ex.org/a", "urn:x:%41", "http://ex.org/\u00fc")]
_TYPED = [("1", "integer"), ("-07", "integer"), ("+3", "integer"), ("1.50", "decimal"), ("-.5", "decimal"), ("1e6", "double"),
          ("-1.0E-2", "double"), ("1.e5", "double"), ("true", "boolean"), ("", "integer"), ("1 ", "integer"), ("x", "dateTime")]
_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
CONSTANTS = st.one_of(st.sampled_from(_IRIS), _TEXTS.map(literal), _TEXTS.map(lambda text: literal(text, None, "en-gb")),
                      st.sampled_from([literal(lexical, XSD + datatype) for lexical, datatype in _TYPED]),
                      _TEXTS.map(lambda text: literal(text, "http://ex.org/type")))
INTEGERS = st.integers(-10_000, 10_000).map(lambda k: literal(str(k), f"{XSD}integer"))


@st.composite
def programs(draw: st.DrawFn) -> RuleSet:
    """A rule set with a timeline; rules may be of no use, but are safe and stratified."""
    length = draw(st.sampled_from([1, 500, 1_000, 60_000]))
    rules = tuple(draw(st.lists(rule(length), max_size=5)))
    facts = tuple(draw(st.lists(fact(length), min_size=0 if rules else 1, max_size=3)))
    start = draw(st.none() | st.integers(-10_000, 10_000))
    source = st.builds(Import, st.sampled_from(["http://ex.org/s", "urn:g"]), st.sampled_from([STREAM, SIMPLE]))
    imports = draw(st.lists(source, max_size=3))
    return RuleSet("test", rules, facts, length, None if start is None else start * length, tuple(imports))


@st.composite
def fact(draw: st.DrawFn, length: int) -> Fact:
    interval = draw(st.just(ALWAYS) | st.integers(-1_000, 1_000).map(lambda k: granule(k, length)))
    return Fact(draw(atom(GIVEN, CONSTANTS)), interval)


@st.composite
def rule(draw: st.DrawFn, length: int) -> Rule:
    body: list[Formula] = [draw(extended(length, GIVEN + DERIVED, CONSTANTS | st.sampled_from(VARIABLES), at=st.sampled_from(VARIABLES)))
                           for _ in range(draw(st.integers(1, 3)))]
    bound = sorted({v for part in body for v in rule_variables(part)})
    terms = CONSTANTS | st.sampled_from(bound) if bound else CONSTANTS
    body += draw(st.lists(extended(length, GIVEN, terms, at=st.sampled_from(bound) if bound else INTEGERS).map(Negation), max_size=2))
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    expressions = expression(terms)
    body += draw(st.lists(st.builds(lambda o, left, right: Test(Call(o, (left, right))), operators, expressions, expressions), max_size=2))
    if draw(st.booleans()):
        value = Variable("Value")
        body.append(Assign(value, draw(expressions)))
        terms = terms | st.just(value)
    body = draw(st.permutations(body))
    instants = INTEGERS | st.sampled_from(bound) if bound else INTEGERS
    head: Atom | At = draw(atom(DERIVED, terms))
    if draw(st.booleans()):
        head = At(draw(instants), head)
    return Rule(head, tuple(body))


@st.composite
def extended(draw: st.DrawFn, length: int, predicates: Sequence[str], terms: st.SearchStrategy[Term],
             at: st.SearchStrategy[Term]) -> Formula:
    """An atom in a window, under an operator, or both; tuple windows over what is given only."""
    unit = draw(st.sampled_from(["none", "time", "tuple"]))
    found = draw(atom([p for p in predicates if p in GIVEN and p != TRIPLE] if unit == "tuple" else predicates, terms))
    size = draw(st.sampled_from([1, 3, 120]) if unit == "tuple" else st.sampled_from([0, 3, 120]))
    kind = draw(st.sampled_from([None, At, DiamondMinus, BoxMinus]))
    if kind in (DiamondMinus, BoxMinus):
        quantified = kind(operator(0, size * length) if unit == "time" else EVER, found)
        return WindowFormula("tuple", size, quantified) if unit == "tuple" else quantified
    inner = found if kind is None else At(draw(at | INTEGERS), found)
    return inner if unit == "none" else WindowFormula(unit, size, inner)


@st.composite
def atom(draw: st.DrawFn, predicates: Sequence[str], terms: st.SearchStrategy[Term]) -> Atom:
    """IRIs are predicates of no argument or three; with one or two they would be triples."""
    name = draw(st.sampled_from(predicates))
    if name == TRIPLE:
        link = draw(terms | st.just(Constant(RDF_TYPE)))
        return Atom(TRIPLE, (draw(terms), link, draw(terms)))
    count = draw(st.sampled_from([0, 3]) if name[0] == "<" else st.integers(0, 3))
    return Atom(name, tuple(draw(terms) for _ in range(count)))


def expression(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Expression]:
    """Arithmetic on terms."""
    def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        binary = st.builds(lambda o, left, right: Call(o, (left, right)), st.sampled_from("+-*/"), inner, inner)
        return binary | st.builds(lambda o, one: Call(o, (one,)), st.sampled_from(["U-", "U+"]), inner)

    return st.recursive(terms, larger, max_leaves=5)
