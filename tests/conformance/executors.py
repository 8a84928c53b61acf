"""The evaluators that the suites can be run on. An executor is a context manager that gives an `Answer`.

An `Answer` takes statements by their text, the records of an input log (static graphs, rule sets, registrations, events, the end) and,
where they are no documents of RIF, the rule sets that the texts in it stand for; it gives what is logged of each query, in order. It
raises DiagnosticError where a statement is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.execution.own_process import own_process
from engine.functions.terms import split
from engine.ir.programs import timed_statement
from engine.ir.rules import STREAM, TRIPLE, Atom, Fact, Import, Rule, RuleSet
from engine.ir.statement import Ask, Select, Statement
from engine.ir.terms import Constant, Variable, literal
from engine.records import Event, GraphVersion, Record, Register, RulesVersion
from engine.reference import streams, temporal
from engine.reference.formulas import Ground, Model, ground
from engine.reference.sparql import Result
from engine.runtime import programs
from engine.runtime.rows import graph_table
from engine.timeline import MAX, Interval
from grammar.rif.parse import parse_rules

QUERY = "test"
INPUT = "urn:input"

Logged = list[tuple[int, Result]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was logged at a time: the answer, and what is inconsistent (None: the evaluator does not tell)."""

    at: int
    result: Result
    inconsistencies: tuple[str, ...] | None = None


Models = Callable[[RuleSet, Sequence[Fact], int], Model]
"""What holds of a program and the facts of its input, up to an instant in ms."""
Evaluations = Callable[[Mapping[str, Statement], Sequence[Record], Mapping[str, RuleSet]], dict[str, list[Evaluation]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Evaluates queries over the records of an input log; called for one statement, registered as QUERY. `model` evaluates rule programs
    with a time of their own, where the evaluator can (None: not); `at_once`: it is asked for the last instant only, as one run of a
    registered program tells of all before."""

    evaluations: Evaluations
    model: Models | None = None
    at_once: bool = False

    def together(self, statements: Mapping[str, Statement], records: Sequence[Record]) -> dict[str, Logged]:
        """The answers of all queries that the records register."""
        return {query: [(e.at, e.result) for e in logged] for query, logged in self.evaluations(statements, records, {}).items()}

    def __call__(self, statement: Statement, records: Sequence[Record]) -> Logged:
        return self.together({statement.text: statement}, records)[QUERY]


@contextmanager
def reference() -> Iterator[Answer]:
    """The reference evaluator."""
    def evaluations(statements: Mapping[str, Statement], records: Sequence[Record],
                    rules: Mapping[str, RuleSet]) -> dict[str, list[Evaluation]]:
        found = streams.run(records, statements.__getitem__, _reader(rules), BUILT_IN_RULES)
        return {query: [Evaluation(e.at, e.result) for e in logged] for query, logged in found.items()}

    yield Answer(evaluations, temporal.evaluate)


@contextmanager
def on_spark(executor: str | None = None) -> Iterator[Answer]:
    """The pump on Spark, every plan on the executor that is named, or on the one that the planner takes."""
    yield Answer(partial(_pumped, executor=executor), partial(registered_model, executor=executor), True)


@contextmanager
def on_cluster() -> Iterator[Answer]:
    """The same on a cluster that is started for it; needs root. Where one is there already (`make test-cluster`), on that."""
    from tests import cluster, sparks

    if cluster.WORKERS in os.environ:
        with on_spark() as answer:
            yield answer
        return
    if (reason := cluster.refusal()) is not None:
        raise SystemExit(f"no cluster, nothing is run: {reason}")
    with cluster.cluster() as beside, cluster.inside(beside):   # states of programs lie in its folder
        try:
            with on_spark() as answer:
                yield answer
        finally:
            sparks.shared_session().stop()


@contextmanager
def in_this_process() -> Iterator[Answer]:
    """The pump with the executor `local`, whose tasks run here instead of in Spark jobs."""
    with own_process() as tasks:
        yield Answer(partial(_pumped, tasks=tasks), derived_model)


def derived_model(program: RuleSet, facts: Sequence[Fact], until_ms: int) -> Model:
    """What rules derive, by their plan in this process."""
    found = programs.run(program, programs.as_given(facts), until_ms)
    return Model({ground(atom, {}): tuple(held) for atom, held in found.held.items()})


def registered_model(program: RuleSet, facts: Sequence[Fact], until_ms: int, **options: Any) -> Model:
    """What a program derives as a continuous query. Streams bring triples, so each fact of the input is one event, of a node with the
    predicate and the terms as they stand, and a rule for each predicate makes its atoms of these."""
    from tests import sparks

    given = {(fact.atom.predicate, len(fact.atom.terms)) for fact in facts}
    node, said = Variable("fact"), Constant("<urn:predicate>")
    terms = {arity: tuple(Variable(f"term{place}") for place in range(arity)) for _, arity in given}
    made = tuple(Rule(Atom(name, terms[arity]), (
        Atom(TRIPLE, (node, said, Constant(literal(f"{name}/{arity}")))),
        *(Atom(TRIPLE, (node, Constant(f"<urn:term{place}>"), term)) for place, term in enumerate(terms[arity])))) for name, arity in given)
    own = replace(program, rules=(*program.rules, *made), facts=(), imports=(Import(INPUT, STREAM),))
    statement = timed_statement(own, "the program", "text/x-lars")
    records: list[Record] = [Register(1, QUERY, statement.text, 1)]
    for number, fact in enumerate(sorted(facts, key=lambda fact: fact.interval.lo), 2):
        held = [(f"<urn:fact{number}>", f"<urn:term{place}>", term.token) for place, term in enumerate(fact.atom.terms)
                if isinstance(term, Constant)]
        name = (f"<urn:fact{number}>", said.token, literal(f"{fact.atom.predicate}/{len(fact.atom.terms)}"))
        records.append(Event(number, INPUT, fact.interval.lo // 2, None, (name, *held), fact.interval.lo // 2))
    last_ms = until_ms + 2 * program.granularity_ms
    records.append(Event(len(records) + 1, INPUT, last_ms, None, (("<urn:a>", "<urn:b>", "<urn:c>"),), last_ms))
    begun: dict[Ground, set[int]] = {}
    ended: dict[Ground, dict[int, int]] = {}
    for event in sparks.pumped(records, lambda text: statement, **options):
        for row in sparks.rows(event):
            atom = _atom_of(row)
            begun.setdefault(atom, set()).add(_ms(row["from"]))
            if "until" in row:
                ended.setdefault(atom, {})[_ms(row["from"])] = _ms(row["until"])
    return Model({atom: tuple(Interval(2 * begin, 2 * ended[atom][begin] - 1 if begin in ended.get(atom, {}) else MAX)
                              for begin in sorted(begins)) for atom, begins in begun.items()})


def _atom_of(row: Mapping[str, str]) -> Ground:
    """An atom from a row of a program's answer, of another predicate than triples."""
    return str(split(row["atom"])[1]), tuple(row[f"a{place}"] for place in range(1, len(row)) if f"a{place}" in row)


def _ms(token: str) -> int:
    """The instant of an xsd:dateTime."""
    return round(datetime.fromisoformat(token[1:].partition('"')[0].replace("Z", "+00:00")).timestamp() * 1000)


def _pumped(statements: Mapping[str, Statement], records: Sequence[Record], rule_sets: Mapping[str, RuleSet],
            **options: Any) -> dict[str, list[Evaluation]]:
    from tests import sparks

    read = _reader(rule_sets)
    graphs, rules = graphs_of(records), BUILT_IN_RULES | {
        r.name: read(r.text, r.media, r.name) for r in records if isinstance(r, RulesVersion) and r.text is not None}
    registered = {r.query: statements[r.text] for r in records if isinstance(r, Register)}
    for query, statement in registered.items():     # what is refused is refused with a diagnostic
        sparks.compile_query(statement, query, graphs, rules)
    found: dict[str, list[Evaluation]] = {query: [] for query in registered}
    events = sparks.pumped(_from_one(records), statements.__getitem__, read_rules=read, **options)
    for event in sorted(events, key=lambda e: (e.query, e.epoch, e.seq)):
        result = result_of(registered[event.query], sparks.rows(event))
        found[event.query].append(Evaluation(event.at_ms, result, tuple(event.meta.get("inconsistencies", ()))))
    return found


def _reader(rules: Mapping[str, RuleSet]) -> streams.ParseRules:
    def read(text: str, media: str, name: str) -> RuleSet:
        return replace(rules[text], name=name) if text in rules else parse_rules(text, media, name)

    return read


def graphs_of(records: Sequence[Record]) -> dict[str, pa.Table]:
    """The static graphs that the records put."""
    return {r.graph: graph_table(r.triples) for r in records if isinstance(r, GraphVersion) and r.triples is not None}


def _from_one(records: Sequence[Record]) -> list[Record]:
    """The records with positions from 1, as an input log has them."""
    shift = 1 - records[0].position
    return [replace(r, position=r.position + shift, **({"since": r.since + shift} if isinstance(r, Register) else {})) for r in records]


def result_of(statement: Statement, rows: list[dict[str, str]]) -> Result:
    """The rows of an answer as the reference evaluator gives them."""
    match statement.query:
        case Select(variables=variables):
            return Result("SELECT", tuple(v.name for v in variables), tuple(rows))
        case Ask():
            return Result("ASK", boolean=bool(rows))
    return Result("CONSTRUCT", triples=frozenset((row["s"], row["p"], row["o"]) for row in rows))


EXECUTORS: dict[str, Callable[[], AbstractContextManager[Answer]]] = {
    "spark": on_spark, "reference": reference, "sql": lambda: on_spark("sql"), "local": lambda: on_spark("local"),
    "cluster": on_cluster, "tasks": in_this_process}
