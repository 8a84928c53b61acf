"""Many cases as one input log: their records take turns, each case in an IRI space of its own.

A Spark job costs the same for one query as for a hundred, so the treatments on Spark run all cases together. What one query gives
does not depend on the others: a case that fails here and not alone has found a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import Any

from engine.records import End, Event, GraphVersion, Mark, Record, Register, RulesVersion
from tests.case_files import Answers, Case

SPACE = "http://ex.org/"
_USING = re.compile(r"(?i)\bUSING\s+RULES\s+[\w.-]+(\s*,\s*[\w.-]+)*")


def merge(cases: Sequence[Case], shuffle: int | None = None, in_steps: bool = False) -> list[Record]:
    """The records of all cases, round and round; one End for those that have one, so merge cases that end alike. With `in_steps` none has
    its next version or registration before all have had their items up to it: else what is due is evaluated before each of another's."""
    logs = [_renamed(number, case.records(shuffle)) for number, case in enumerate(cases)]
    ends = any(isinstance(log[-1], End) for log in logs)
    merged: list[Record] = []
    places: dict[tuple[int, int], int] = {}
    for number, record in _in_steps(logs) if in_steps else _in_turns(logs):
        if not isinstance(record, End):
            position = places[number, record.position] = len(merged) + 1
            if isinstance(record, Register):
                record = replace(record, since=places[number, record.since])
            merged.append(replace(record, position=position))
    return [*merged, End(len(merged) + 1)] if ends else merged


def _in_turns(logs: Iterable[Sequence[Record]]) -> Iterator[tuple[int, Record]]:
    """One record of each log, with its number, then the next of each."""
    for turn in zip_longest(*logs):
        yield from ((number, record) for number, record in enumerate(turn) if record is not None)


def _in_steps(logs: Iterable[Sequence[Record]]) -> Iterator[tuple[int, Record]]:
    """What comes before the items of each log, then these, and so on."""
    steps = [[list(step) for _, step in groupby(log, lambda record: isinstance(record, Event | Mark))] for log in logs]
    for some in zip_longest(*(own if own and not isinstance(own[0][0], Event | Mark) else [[], *own] for own in steps), fillvalue=[]):
        yield from _in_turns(some)


def ends(case: Case) -> bool:
    """Whether the log of a case ends with the end of its streams."""
    return isinstance(case.records()[-1], End)


def case_of(query: str, cases: Sequence[Case]) -> Case:
    """Whose a query of the merged log is."""
    return cases[int(query.partition(".")[0][1:])]


def split(answers: Answers, cases: Sequence[Case]) -> dict[str, Answers]:
    """The answers of each case by its name, in its own IRIs again."""
    found: dict[str, Answers] = {case.name: {name: [] for name in case.streams_of_results} for case in cases}
    for name, logged in answers.items():
        number, _, query = name.partition(".")
        back = f"{SPACE}{number}/"
        found[case_of(name, cases).name][query] = [
            (at, [{v: token.replace(back, SPACE) for v, token in row.items()} for row in bag]) for at, bag in logged]
    return found


def _renamed(number: int, records: Iterable[Record]) -> list[Record]:
    """The records with every IRI of the cases' space, the ids of queries and the names of rule sets made the case's own."""
    records = list(records)
    rules = {record.name for record in records if isinstance(record, RulesVersion)}
    return [_own_rules(number, replace(record, **{name: _deep(value, f"{SPACE}c{number}/") for name, value in _fields(record).items()},
                                       **({"query": f"c{number}.{record.query}"} if hasattr(record, "query") else {})), rules)
            for record in records]


def _own_rules(number: int, record: Record, names: set[str]) -> Record:
    if isinstance(record, RulesVersion):
        return replace(record, name=f"c{number}-{record.name}")
    if isinstance(record, Register):
        def own(clause: re.Match[str]) -> str:
            return re.sub(r"[\w.-]+", lambda word: f"c{number}-{word[0]}" if word[0] in names else word[0], clause[0])
        return replace(record, text=_USING.sub(own, record.text))
    return record


def _fields(record: Record) -> dict[str, Any]:
    names = {Event: ("stream", "graph", "triples"), GraphVersion: ("graph", "triples"), Register: ("text",),
             RulesVersion: ("text",)}.get(type(record))
    return {name: getattr(record, name) for name in names or (("stream",) if hasattr(record, "stream") else ())}


def _deep(value: Any, space: str) -> Any:
    if isinstance(value, str):
        return value.replace(SPACE, space)
    return tuple(_deep(part, space) for part in value) if isinstance(value, tuple) else value
