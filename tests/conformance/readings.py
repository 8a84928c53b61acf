"""Queries under rules, each over its data as a static graph and as the content of one window; all in one run of an executor.

A Spark job costs the same for one query as for a hundred, so that the cases of a suite share one log, each with a graph and a stream
of its own. The schema in a window is met by general rules, that in a graph is evaluated away before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.statement import GraphSource, RuleSource, Statement, StreamSource, TimeWindow
from engine.records import End, Event, GraphVersion, Mark, Record, Register, RulesVersion, Triple
from tests.conformance.executors import Answer, Evaluation
from tests.conformance.outcomes import refusal

SPACE = "http://example.org/readings/"
CLOCK = f"{SPACE}clock"
WINDOW = TimeWindow(1000, 1000)
FULL, QUIET = 1000, 2000
"""The times of the evaluations: the windows have their items; they are empty again."""
AS_GRAPH, AS_WINDOW = READINGS = ("as static graph", "as content of a window")


@dataclass(frozen=True, slots=True)
class Question:
    """A query over triples under rule sets: those built in by their names, and one of its own."""

    statement: Statement
    data: tuple[Triple, ...]
    rules: tuple[str, ...] = ()
    own: RuleSet | None = None


Told = dict[str, Evaluation]
"""The evaluation that tells, by reading."""


def ask(answer: Answer, questions: Mapping[str, Question]) -> dict[str, Told | str]:
    """What an executor answers to each question; a text where it refuses one or fails."""
    try:
        return {**_told(answer, questions)} if questions else {}
    except (DiagnosticError, AssertionError) as error:
        if len(questions) == 1:
            return dict.fromkeys(questions, refusal(error))
        return {name: told for name, question in questions.items() for told in ask(answer, {name: question}).values()}


def _told(answer: Answer, questions: Mapping[str, Question]) -> dict[str, Told]:
    statements: dict[str, Statement] = {}
    log: list[Record] = []
    for number, (name, question) in enumerate(questions.items()):
        log.append(GraphVersion(0, f"{SPACE}g{number}", question.data))
        log += [RulesVersion(0, _own(number), "", _own(number))] if question.own else []
        statements |= {f"{name} {reading}": _over(reading, number, question, f"{name} {reading}") for reading in READINGS}
    log += [Register(0, key, key, 0) for key in statements]
    log += (Event(0, f"{SPACE}s{number}", 500, None, question.data, 500) for number, question in enumerate(questions.values()))
    log += [Event(0, CLOCK, 500, None, ((f"<{CLOCK}>", f"<{CLOCK}>", f"<{CLOCK}>"),), 500)]
    log += [Mark(0, stream, QUIET) for stream in _streams(statements.values())]
    rules = {_own(number): question.own for number, question in enumerate(questions.values()) if question.own}
    found = answer.evaluations(statements, list(_numbered([*log, End(0)])), rules)
    return {name: {reading: _at(_time(reading, question), found[f"{name} {reading}"]) for reading in READINGS}
            for name, question in questions.items()}


def _own(number: int) -> str:
    """Name and text of a question's own rule set."""
    return f"rules{number}"


def _over(reading: str, number: int, question: Question, text: str) -> Statement:
    """The query over the graph or stream of this number. The clock makes it tick where no window has data."""
    window = StreamSource(f"{SPACE}s{number}" if _time(reading, question) == FULL else CLOCK, WINDOW)
    graphs = (GraphSource(f"{SPACE}g{number}", named=False),) if reading == AS_GRAPH else ()
    names = (*question.rules, *([_own(number)] if question.own else []))
    return replace(question.statement, text=text, registered=True, streams=(window,), graphs=graphs, rules=tuple(map(RuleSource, names)))


def _time(reading: str, question: Question) -> int:
    """When the data is there; a window without data is one that is empty again."""
    return FULL if reading == AS_WINDOW and question.data else QUIET


def _streams(statements: Iterable[Statement]) -> dict[str, None]:
    return dict.fromkeys(source.stream for statement in statements for source in statement.streams)


def _numbered(records: Iterable[Record]) -> Iterator[Record]:
    for position, record in enumerate(records, 1):
        yield replace(record, position=position, **({"since": position} if isinstance(record, Register) else {}))


def _at(time: int, logged: Iterable[Evaluation]) -> Evaluation:
    return next(evaluation for evaluation in logged if evaluation.at == time)
