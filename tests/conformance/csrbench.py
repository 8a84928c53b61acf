"""CSRBench: one stream of Turtle files, a file per second, and the answers at each close (IRIs exact, numbers within 5e-5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.functions.terms import split
from engine.ir.spans import DiagnosticError
from engine.records import End, Event, Record, Register
from grammar import parse
from tests.case_files import scoped
from tests.conformance.executors import QUERY, Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal

TOLERANCE = 5e-5


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """Every query that an expected file of the folder names."""
    for path in sorted(folder.glob("expected*.json")):
        for name, expected in json.loads(path.read_text("utf-8"))["queries"].items():
            if only in name:
                yield from _query(folder, name, expected, answer)


def _query(folder: Path, name: str, expected: Mapping[str, Any], answer: Answer) -> Iterator[Outcome]:
    """One outcome per evaluation time of one query."""
    queries = folder / "queries"
    if not (queries / f"{name}.engine.query").exists():
        yield Outcome(name, Verdict.SKIPPED, f"the folder has no {name}.engine.query")
        return
    text = substituted((queries / f"{name}.engine.query").read_text("utf-8"), queries / f"{name}.config.json")
    try:
        statement = parse(text)
        found = dict(answer(statement, [Register(0, QUERY, text, 0), *stream(folder / "data", statement.streams[0].stream)]))
    except DiagnosticError as error:
        yield Outcome(name, Verdict.SKIPPED, refusal(error))
        return
    windows = {w["close_excl"]: w["rows"] for key in ("early_partial_windows", "full_windows") for w in expected.get(key, ())}
    for at in sorted(windows.keys() | found.keys()):
        rows = list(found[at].rows) if at in found else []
        if at not in windows:
            yield Outcome(f"{name} at {at}", Verdict.FAILED, f"no evaluation expected, got {rows}")
        elif same_rows(rows, windows[at]):
            yield Outcome(f"{name} at {at}", Verdict.PASSED)
        else:
            yield Outcome(f"{name} at {at}", Verdict.FAILED, f"expected {windows[at]}, got {rows}")


def substituted(text: str, config: Path) -> str:
    """A query text with its ``${VARIABLES}`` filled in from the vars of its config file."""
    values = json.loads(config.read_text("utf-8"))["vars"] if config.exists() else {}
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)


def stream(folder: Path, iri: str) -> list[Record]:
    """The records of the stream: ``data_NN.ttl`` is one item of second NN."""
    records: list[Record] = []
    for path in sorted(folder.glob("data_*.ttl"), key=_second):
        position, t = len(records) + 1, 1000 * _second(path)
        triples = [(str(q.subject), str(q.predicate), str(q.object)) for q in pyoxigraph.parse(path=str(path))]
        records.append(Event(position, iri, t, None, scoped(triples, f"i{position}"), t))
    return [*records, End(len(records) + 1)]


def same_rows(found: Sequence[Mapping[str, str]], expected: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two bags of rows agree; each found row is used once."""
    waiting = list(expected)
    for row in found:
        fitting = next((e for e in waiting if _same_row(row, e)), None)
        if fitting is None:
            return False
        waiting.remove(fitting)
    return not waiting


def _same_row(row: Mapping[str, str], expected: Mapping[str, Any]) -> bool:
    bound = {name: value for name, value in expected.items() if value is not None}
    return row.keys() == bound.keys() and all(_same_value(split(row[name]).lexical, bound[name]) for name in row)


def _same_value(lexical: str, expected: object) -> bool:
    if not isinstance(expected, int | float):
        return lexical == expected
    try:
        return abs(float(lexical) - expected) <= TOLERANCE
    except ValueError:
        return False


def _second(path: Path) -> int:
    return int(path.stem.removeprefix("data_"))
