"""``thalweg run``: a recorded stream through a query, one line per evaluation."""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import TextIO

import orjson

from engine.ir.spans import DiagnosticError
from engine.ir.statement import GraphSource, Statement
from engine.records import Triple
from engine.runtime.errors import EngineError
from engine.runtime.replay import explain, replay
from engine.runtime.resources import Item, ResultEvent, iso
from grammar import parse
from server.formats import media
from server.formats.bodies import gunzip
from server.formats.items import Reader
from server.formats.reading import read_graph, read_items
from server.formats.results import table
from server.limits import Limits
from server.problems import Problem, from_diagnostics

_ANY = 1 << 40
# A file on one's own disk may be large; only what would break the parser stays forbidden.
FILE_LIMITS = Limits(item_bytes=_ANY, item_triples=_ANY, literal=_ANY, push_body_streamed=_ANY)
_TIMED_LINE = re.compile(rb"\s*-?\d+\t")


def run(given: argparse.Namespace, out: TextIO) -> int:
    """Replay, or explain; the exit status. Mistakes in texts and files are shown with their places."""
    try:
        text = sys.stdin.read() if str(given.query) == "-" else given.query.read_text(encoding="utf-8")
        statement, graphs = _with_graphs(parse(text), given.graph, given.rules)
        if given.explain:
            print(explain(statement, [source.stream for source in statement.streams], graphs, given.rules, given.explain), file=out)
        else:
            streams = _streams(given.stream, statement)
            _write(replay(statement, streams, graphs, given.rules), given.format, out)
    except BrokenPipeError:
        return 0
    except DiagnosticError as error:
        return _fail(from_diagnostics(error).text())
    except Problem as problem:
        return _fail(problem.text())
    except (EngineError, OSError, ValueError, RuntimeError) as error:
        return _fail(f"thalweg: {error}\n")
    return 0


def read_stream(path: Path) -> list[Item]:
    """The items of a recorded stream, each with its time stamp; the name's end tells the format."""
    body = _bytes(path)
    kind = media.TIMED if _TIMED_LINE.match(body) else _media(path)
    try:
        return read_items(body, kind, Reader(event_time=True, limits=FILE_LIMITS), base=path.resolve().as_uri()).items
    except Problem as problem:
        raise _in_file(problem, path) from problem


def read_background(path: Path) -> list[Triple]:
    """The triples of a static graph."""
    try:
        return read_graph(_bytes(path), _media(path), FILE_LIMITS, base=path.resolve().as_uri())
    except Problem as problem:
        raise _in_file(problem, path) from problem


def _streams(given: Iterable[str], statement: Statement) -> dict[str, list[Item]]:
    """Recorded streams by IRI. One without IRI is the stream that the query names."""
    named = list(dict.fromkeys(source.stream for source in statement.streams))
    found: dict[str, list[Item]] = {}
    for text in given:
        iri, path = _named_file(text)
        if iri is None:
            if len(named) != 1:
                raise ValueError(f"--stream {text}: write IRI=FILE, for the query reads {len(named)} streams.")
            iri = named[0]
        found.setdefault(iri, []).extend(read_stream(path))
    missing = [iri for iri in named if iri not in found]
    if missing:
        raise ValueError(f"No --stream for {', '.join(missing)}.")
    return found


def _with_graphs(statement: Statement, given: Iterable[str], rules: Sequence[str]) -> tuple[Statement, dict[str, list[Triple]]]:
    """Static graphs by IRI. One without IRI is the graph that the query names and nobody else gives; where there is none, it is what
    its rules reason with (``USING GRAPH``), and the statement says so."""
    files = [_named_file(text) for text in given]
    taken = {iri for iri, _ in files}
    free = [source.iri for source in (*statement.graphs, *statement.reasoning_graphs) if source.iri not in taken]
    found: dict[str, list[Triple]] = {}
    for iri, path in files:
        if iri is None and not free and not (rules or statement.rules):
            raise ValueError(f"--graph {path}: the query names no graph for it, and no rules that could use it.")
        if iri is None and not free:
            iri = path.resolve().as_uri()
            statement = changed(statement, reasoning_graphs=(*statement.reasoning_graphs, GraphSource(iri)))
        found.setdefault(iri or free.pop(0), []).extend(read_background(path))
    return statement, found


def _named_file(text: str) -> tuple[str | None, Path]:
    """``IRI=FILE`` or ``FILE``; both may hold ``=``."""
    if Path(text).is_file():
        return None, Path(text)
    for place in [found.start() for found in re.finditer("=", text)]:
        path = Path(text[place + 1:])
        if ":" in text[:place] and path.is_file():
            return text[:place].strip("<>"), path
    raise ValueError(f"There is no file {text.partition('=')[2] or text}.")


def _bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return gunzip(file, _ANY, _ANY) if zipped else file.read()


def _media(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = media.EXTENSIONS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise ValueError(f"{path}: the format is not known by its name; known are {', '.join(media.EXTENSIONS)}, also with .gz.")
    return kind


def _write(answers: Iterator[ResultEvent], form: str, out: TextIO) -> None:
    write = {"jsonl": _as_json, "csv": _as_csv, "table": _as_table}[form]
    first = True
    for answer in answers:
        print(write(answer, first), end="", file=out, flush=True)
        first = False


def _as_json(answer: ResultEvent, first: bool) -> str:
    if answer.kind == "graph":
        return orjson.dumps({"at": answer.at_ms, "graph": answer.payload.decode()}).decode() + "\n"
    return orjson.dumps({"at": answer.at_ms, "results": orjson.Fragment(answer.payload)}).decode() + "\n"


def _as_csv(answer: ResultEvent, first: bool) -> str:
    """SPARQL CSV with the time in front; the header once."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    head, *rows = _cells(answer, media.CSV)
    if first:
        writer.writerow(["at", *head])
    writer.writerows([answer.at_ms, *row] for row in rows)
    return buffer.getvalue()


def _as_table(answer: ResultEvent, first: bool) -> str:
    """Columns side by side under the time of the evaluation."""
    head, *rows = _cells(answer, media.TSV)
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (head, ["-" * w for w in widths], *rows)]
    return f"at {iso(answer.at_ms) or answer.at_ms} ({len(rows)} rows)\n" + "\n".join(f"  {line}" for line in lines) + "\n\n"


def _cells(answer: ResultEvent, kind: str) -> list[list[str]]:
    """Header and rows of an answer as text; a graph has the columns of its triples."""
    if answer.kind == "graph":
        lines = [line.rstrip(" .").split(" ", 2) for line in answer.payload.decode().splitlines()]
        return [["subject", "predicate", "object"], *lines]
    if answer.kind == "boolean":
        return [["answer"], [str(orjson.loads(answer.payload)["boolean"]).lower()]]
    text = table(answer.payload, kind).decode()
    if kind == media.CSV:
        return list(csv.reader(io.StringIO(text, newline="")))
    return [line.split("\t") for line in text.rstrip("\n").split("\n")]


def _in_file(problem: Problem, path: Path) -> Problem:
    return Problem(problem.slug, f"{path}: {problem.detail}", problem.status, problem.errors, problem.extra)


def _fail(text: str) -> int:
    sys.stderr.write(text)
    return 1
