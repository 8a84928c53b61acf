"""What a shard asks of the rows that a rule derives, of a closure that shards make together."""

from __future__ import annotations

import pytest

from engine.ir.rules import TRIPLE, Atom, Rule, Table
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.plan.nodes import ClosedSource, Exchange, StaticSource
from engine.sql.dialect import DUCKDB
from engine.sql.fixpoint import closure_text
from engine.sql.lower import Lowering

X, Y, P = map(Variable, "xyp")
OBJECTS = Exchange(frozenset(("<p>",)), ((frozenset((RDF_TYPE,)), frozenset(("<C>", "<D>"))), (frozenset(("<sent>",)), None)))


def head(subject: Term, property_: Term, object_: Term) -> Atom:
    return Atom(TRIPLE, (subject, property_, object_))


def of_properties(*tokens: str) -> Table:
    return Table((P,), tuple((Constant(token),) for token in tokens))


def asked(rule: Rule) -> str:
    """The condition; variables of the body have names by their place in it."""
    source = ClosedSource("c", (StaticSource("urn:g"),), rules=(rule,), exchange=OBJECTS)
    [stratum] = closure_text(source, DUCKDB, Lowering(DUCKDB, "q", 0)).strata
    return " | ".join(step.text[1:-1].rpartition(" FROM ")[2].partition(" WHERE ")[2] for step in stratum.steps)


@pytest.mark.parametrize(("made", "tables", "expected"), [
    (head(X, Constant("<q>"), Y), (), "at_home(c0)"),
    (head(X, Constant("<p>"), Y), (), "at_home(c0) OR at_home(c1)"),
    (head(X, Constant("<sent>"), Y), (), ""),
    (head(X, Constant(RDF_TYPE), Constant("<E>")), (), "at_home(c0)"),
    (head(X, Constant(RDF_TYPE), Constant("<D>")), (), ""),
    (head(X, Constant(RDF_TYPE), Y), (), "at_home(c0) OR c1 IN ('<C>', '<D>')"),
    (head(X, P, Y), (of_properties("<q>", "<r>"),), "at_home(c0)"),
    (head(X, P, Y), (of_properties("<q>", "<p>"),), "at_home(c0) OR c2 IN ('<p>') AND at_home(c1)"),
], ids=["of no key", "by object", "sent", "of a class", "of a class that is sent", "of any class", "of some", "of some by object"])
def test_only_what_the_head_leaves_open_is_asked_of_rows(made: Atom, tables: tuple[Table, ...], expected: str) -> None:
    assert asked(Rule(made, (head(X, Constant("<given>"), Y), *tables))) == expected
