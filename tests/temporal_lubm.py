"""LUBM's facts with intervals of validity, and programs over them in the style of temporal LUBM (Wałęga et al., "Stream reasoning with
DatalogMTL", 7.1): the rules of OWL 2 RL for its ontology, and rules with metric operators above them, without recursion through time
and with it. The published program and generator are not at hand; these rules and intervals are our own."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pyoxigraph

from engine.ir.rules import TRIPLE, Falsum, Rule, RuleSet, Table, atoms
from engine.ir.substitution import with_constants
from engine.ir.terms import RDF_TYPE, Constant
from engine.plan.derivations import build
from engine.records import Triple
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.partial import compile_rules
from engine.rewrite.temporal import normal_form
from engine.sql.steps import Statements
from engine.timeline import Interval, coalesce
from engine.worker.functions import register_duckdb
from engine.worker.program import ProgramState
from engine.worker.tables import table_of
from grammar.datalogmtl.parse import parse_datalogmtl
from tests.conformance.datasets import read_triples
from tests.shared import shared

OWL, UB = "http://www.w3.org/2002/07/owl#", "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#"
END_S, LONGEST_S = 300, 3       # the timeline, and how long a fact holds
EQUALITY = {"eq-ref", "eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o", "dt-eq", "dt-type2+eq-rep-s"}
"""Rules that no statement of LUBM needs: it has no owl:sameAs."""
_HEAD = f"PREFIX ub: <{UB}>\n"
PROGRAMS = {
    "not recursive": _HEAD + """
ub:ActiveStudent(X) :- Diamondminus[0,4]ub:Student(X), Diamondminus[0,4]ub:takesCourse(X,C)
ub:BusyTeacher(X) :- Diamondminus[0,6]ub:teacherOf(X,C), Diamondminus[0,6]ub:publicationAuthor(P,X), Diamondminus[0,6]ub:Faculty(X)
ub:SteadyMember(X,D) :- Boxminus[0,1]ub:memberOf(X,D)
ub:GoodAdvice(X,Y) :- Diamondminus[0,4]ub:advisor(X,Y), Boxminus[0,2]ub:BusyTeacher(Y)
Boxplus[0,3]ub:Watched(X) :- Diamondminus[0,6]ub:GoodAdvice(X,Y), Diamondminus[0,6]ub:ActiveStudent(X)
""",
    "recursive": _HEAD + """
ub:Connected(X,D) :- Boxminus[0,1]ub:memberOf(X,D)
ub:Connected(X,E) :- Diamondminus[0,4]ub:Connected(X,D), Diamondminus[0,4]ub:subOrganizationOf(D,E)
ub:Student2(X) :- Diamondminus[0,6]ub:Student(X)
Boxplus[0,2]ub:Enrolled(X) :- ub:Student2(X), ub:takesCourse(X,C)
Boxplus[0,2]ub:Enrolled(X) :- ub:Enrolled(X), Diamondminus[0,4]ub:takesCourse(X,C)
ub:Influences(Y,X) :- Diamondminus[0,4]ub:advisor(X,Y), Diamondminus[0,6]ub:Professor(Y)
ub:Influences(Y,Z) :- Diamondminus[0,4]ub:Influences(Y,X), Diamondminus[0,4]ub:Influences(X,Z)
ub:Near(X,Y) :- Diamondminus[0,2]ub:Connected(X,D), Diamondminus[0,2]ub:headOf(Y,D)
""",
}


def timed_rules(name: str) -> tuple[Rule, ...]:
    """The rules with time of a program."""
    return parse_datalogmtl(PROGRAMS[name], "lubm").rules


@lru_cache(maxsize=2)
def program(name: str) -> RuleSet:
    """A program: its rules with time, and those of OWL 2 RL for LUBM's ontology that lead to them."""
    own = timed_rules(name)
    ontology = list(read_triples(shared("lubm", "ontology", "univ-bench.ttl"), "http://example.org/", "c"))
    general = (rule for rule in compile_rules(BUILT_IN["owl2rl"], ontology).rules if rule.name not in EQUALITY)
    plain = [one for rule in general if not isinstance(rule.head, Falsum) for one in _by_rows(rule)]
    asked = {key for rule in own for formula in rule.body for key in _keys(formula)}
    before = -1
    while before != len(asked):
        before = len(asked)
        asked |= {key for rule in plain if _keys(rule.head) & asked for formula in rule.body for key in _keys(formula)}
    needed = dict.fromkeys(rule for rule in plain if _keys(rule.head) & asked)
    return RuleSet("lubm", (*needed, *own))


def _by_rows(rule: Rule) -> Iterator[Rule]:
    """A rule with constants for each row of its table."""
    table = next((formula for formula in rule.body if isinstance(formula, Table)), None)
    for row in table.rows if table is not None else ():
        yield with_constants(replace(rule, body=tuple(replace(f, rows=(row,)) if f is table else f for f in rule.body)))
    if table is None:
        yield rule


def _keys(formula: object) -> set[str]:
    """The properties and classes of a formula's atoms."""
    found = set()
    for atom in atoms(formula):     # type: ignore[arg-type]
        if atom.predicate == TRIPLE and isinstance(atom.terms[1], Constant):
            of_class = atom.terms[1].token == RDF_TYPE and isinstance(atom.terms[2], Constant)
            found.add(atom.terms[2].token if of_class else atom.terms[1].token)     # type: ignore[union-attr]
    return found


def facts(share: int = 1) -> list[tuple[Triple, Interval]]:
    """LUBM(1)'s triples, or those about one of `share` subjects, each with an interval: both ends are multiples of half a second, drawn
    with a fixed seed."""
    with gzip.open(shared("lubm", "lubm1-seed0.nt.gz")) as file:
        triples = [tuple(map(str, quad))[:3] for quad in pyoxigraph.parse(file.read(), format=pyoxigraph.RdfFormat.N_TRIPLES)]
    chosen = [triple for triple in triples if OWL not in triple[1] + triple[2]]
    subjects = {subject: number for number, subject in enumerate(sorted({s for s, _, _ in chosen}))}
    chosen = [triple for triple in chosen if subjects[triple[0]] % share == 0]
    random = np.random.default_rng(11)
    begins = random.integers(0, 2 * END_S, len(chosen)) * 500
    lengths = random.integers(0, 2 * LONGEST_S + 1, len(chosen)) * 500
    return [(triple, Interval(2 * int(begin), 2 * int(begin + length))) for triple, begin, length in zip(chosen, begins, lengths)]


def state(rules: RuleSet) -> ProgramState:
    """A program in a database of its own."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(connection)
    made = normal_form(rules)
    return ProgramState(connection, Statements(build(rules, made.rules)))


def slices(given: Sequence[tuple[Triple, Interval]], length_ms: int) -> Iterator[tuple[dict[str, pa.Table], int]]:
    """The facts as a stream: those that begin in each slice of time, and its last point."""
    last = max(when.hi for _, when in given)
    ordered = sorted(given, key=lambda fact: fact[1].lo)
    place = 0
    for until in range(2 * length_ms - 1, last + 24_000 + 2 * length_ms, 2 * length_ms):
        begin = place
        while place < len(ordered) and ordered[place][1].lo <= until:
            place += 1
        rows = [(*triple, when.lo, when.hi) for triple, when in ordered[begin:place]]
        yield {f"{TRIPLE}/3": table_of(rows, 3)} if rows else {}, until


Held = dict[tuple[str, ...], list[Interval]]


def collected(tables: Iterable[Mapping[str, pa.Table]], names: Iterable[str]) -> Held:
    """What several steps gave of some relations, coalesced, by relation and terms."""
    wanted, found = set(names), dict[tuple[str, ...], list[Interval]]()
    for given in tables:
        for name in wanted & given.keys():
            table = given[name]
            cells = [table[column].to_pylist() for column in table.column_names]
            for *tokens, lo, hi in zip(*cells):
                found.setdefault((name, *tokens), []).append(Interval(lo, hi))
    return {key: coalesce(when) for key, when in found.items()}


@lru_cache(maxsize=2)
def heads(name: str) -> list[str]:
    """The relations that the rules with time derive."""
    rules = program(name)
    known = {relation.name for relation in build(rules, normal_form(rules).rules).relations}
    asked = {key for rule in timed_rules(name) for key in _keys(rule.head)}
    return sorted(relation for relation in known if any(key in relation for key in asked))
