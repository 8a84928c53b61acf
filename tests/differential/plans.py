"""Cases on the executors: all of a batch in one job, each with its data in windows or as static graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from engine.compiler import Catalog, compile_statement
from engine.execution.choices import StrategyName
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.ir.spans import DiagnosticError
from engine.records import Event
from engine.reference.sparql import Result
from engine.runtime.rows import facts_of
from grammar import parse
from tests.conformance.datasets import GRAPH, Dataset, over_graphs, over_windows
from tests.conformance.executors import graphs_of, result_of
from tests.differential.engines import triples
from tests.differential.generator import STEM, Case
from tests.encoded import encode

READINGS = {"windows": over_windows, "graphs": over_graphs}
TICK = 1000


def answers(executor: Executor, cases: Sequence[tuple[Case, str]]) -> list[Result | str]:
    """What the executor makes of cases and readings; an error is told in words."""
    found: list[Result | str] = []
    dues: list[Due] = []
    for number, (case, reading) in enumerate(cases):
        try:
            dues.append(due(f"case{number}", case, reading))
            found.append("")
        except DiagnosticError as error:
            found.append(str(error))
    for answer, task in zip(executor.evaluate(dues), dues):
        executor.forget(task.query)
        number = int(task.query.removeprefix("case"))
        if answer.table is None:
            found[number] = f"{type(answer.error).__name__}: {answer.error}"
        else:
            rows = [{k: v for k, v in row.items() if v is not None} for row in answer.table.to_pylist()]
            found[number] = result_of(task.compiled.statement, rows)
    return found


def due(name: str, case: Case, reading: str) -> Due:
    """The evaluation of a case that is due. Streams and the default graph are the case's own: a job reads each source once."""
    named = {iri: tuple(triples(lines, f"g{n}")) for n, (iri, lines) in enumerate(case.named.items())}
    data = Dataset(tuple(triples(case.default, "d")), named)
    set_up = READINGS[reading](parse(case.query), data)
    statement = set_up.statement
    own = {iri: f"{iri}/{name}" for iri in (GRAPH, *(source.stream for source in statement.streams))}
    statement = replace(statement, streams=tuple(replace(source, stream=own[source.stream]) for source in statement.streams),
                        graphs=tuple(replace(graph, iri=own.get(graph.iri, graph.iri)) for graph in statement.graphs))
    graphs = {own.get(iri, iri): table for iri, table in graphs_of(set_up.log).items()}
    contents = {source.stream: StreamContent() for source in statement.streams}
    for event in set_up.log:
        if isinstance(event, Event) and set_up.times == (TICK,):
            contents[own[event.stream]].append(facts_of(encode([event])))
    compiled = compile_statement(statement, Catalog(dict.fromkeys(contents, "event"), graphs), name)
    return Due(name, compiled, (TICK,), -1, contents, graphs)


def apart(cases: Sequence[tuple[Case, str]]) -> list[tuple[Case, str]]:
    """The cases with named graphs of their own, so that they can share a job."""
    def renamed(case: Case, stem: str) -> Case:
        named = {iri.replace(STEM, stem): lines for iri, lines in case.named.items()}
        return Case(case.query.replace(STEM, stem), case.default, named)

    return [(renamed(case, f"{STEM}{n}/"), reading) for n, (case, reading) in enumerate(cases)]


@contextmanager
def in_process(strategy: StrategyName = "recompute") -> Iterator[Executor]:
    """The executor whose tasks run in this process."""
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy=strategy)
        yield executor
        executor.close()
