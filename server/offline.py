"""``thalweg run``: recorded streams through queries, one line per evaluation."""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace as changed
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TextIO

import orjson
import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.statement import GraphSource, Statement
from engine.records import Triple
from engine.runtime.errors import EngineError
from engine.runtime.place import Place, PlaceName, choose, triples_of
from engine.runtime.replay import explain, made, named, replay, warnings
from engine.runtime.resources import Item, Recording, ResultEvent, iso
from engine.runtime.stores import checked
from engine.runtime.streams import check_name
from grammar import parse
from grammar.rule_sets import RULE_SET_EXTENSIONS, parse_rules
from server.formats import media
from server.formats.bodies import gunzip
from server.formats.columns import read_columns
from server.formats.items import Reader
from server.formats.reading import read_graph, read_items
from server.formats.results import table
from server.limits import Limits
from server.problems import Problem, from_diagnostics

Given = ParamSpec("Given")
_ANY = 1 << 40
# A file on one's own disk may be large; only what would break the parser stays forbidden.
FILE_LIMITS = Limits(item_bytes=_ANY, item_triples=_ANY, literal=_ANY, push_body_streamed=_ANY, push_triples=_ANY)
_READER = Reader(event_time=True, limits=FILE_LIMITS)
MOST_PIPED = 16 << 20
"""Characters of a text from standard input or another pipe, which may never end."""
_INTERRUPTED = re.compile(r"^Query interrupted$|\bKeyboardInterrupt\b")     # what DuckDB makes of SIGINT within a statement
_PIECE = 1 << 20    # characters: of more at once the system may write a part, which an unbuffered output (PYTHONUNBUFFERED) does not tell
_TIMED_LINE = re.compile(rb"\s*-?\d+\t")


def told(work: Callable[Given, None]) -> Callable[Given, int]:
    """A command that does this; it gives the exit status. Mistakes in texts and files are shown with their places."""
    @wraps(work)
    def command(*given: Given.args, **named: Given.kwargs) -> int:
        try:
            work(*given, **named)
            return 0
        except BrokenPipeError:
            return 0
        except DiagnosticError as error:
            text = from_diagnostics(error).text()
        except Problem as problem:
            text = problem.text()
        except FileNotFoundError as error:
            text = f"thalweg: There is no file {error.filename}.\n"
        except Exception as error:
            if _INTERRUPTED.search(str(error)):
                raise KeyboardInterrupt from error
            if not isinstance(error, (EngineError, OSError, ValueError, RuntimeError)):
                raise
            text = f"thalweg: {error}\n"
        sys.stderr.write(text)
        return 1
    return command


@told
def run(given: argparse.Namespace, out: TextIO) -> None:
    files = Files.of(given)
    streams = None if given.explain else files.streams()
    for name, warning in warnings(files.queries, files.graphs, files.rules, files.rule_sets, streams):
        print(f"warning: {name + ': ' if len(files.queries) > 1 else ''}{warning.render()}", file=sys.stderr)
    if streams is None:
        shown = explain(files.queries, _pushed(files.queries), files.graphs, files.rules, given.explain, files.rule_sets)
        print("\n".join(f"# {name}\n{text}" if len(shown) > 1 else text for name, text in shown.items()), file=out)
    else:
        place = chosen(given, files, streams)
        answers = replay(files.queries, streams, files.graphs, files.rules, files.rule_sets, place)
        _write(answers, given.format, out, len(files.queries) > 1, place.name)


@dataclass(frozen=True, slots=True)
class Files:
    """What the arguments of a command name: statements by name, static graphs by IRI, further rule sets of all statements, rule sets of
    files by name, the files of recorded streams with their IRIs."""

    queries: dict[str, Statement]
    graphs: dict[str, list[Triple]]
    rules: list[str]
    rule_sets: dict[str, RuleSet]
    recordings: Sequence[tuple[str, Path]]

    @classmethod
    def of(cls, given: argparse.Namespace) -> Files:
        """Read all but the recordings."""
        queries = named([parse(read_text(path)) for path in given.query])
        rules, rule_sets = _with_rules(queries, given.rules)
        queries, graphs = _with_graphs(queries, given.graph, rules)
        return cls(queries, graphs, rules, rule_sets, _recordings(given.stream, queries))

    def streams(self) -> dict[str, list[Item | pa.Table]]:
        """The recorded streams by IRI: one of each stream that is read and not made."""
        if missing := [iri for iri in _pushed(self.queries) if iri not in dict(self.recordings)]:
            raise ValueError(f"No --stream for {', '.join(missing)}.")
        found: dict[str, list[Item | pa.Table]] = {}
        for iri, path in self.recordings:
            found.setdefault(iri, []).extend(read_recording(path))
        return found


def chosen(given: argparse.Namespace, files: Files, streams: Mapping[str, Recording]) -> Place:
    """Where to evaluate; it is said on standard error, with the reason."""
    place = choose(triples_of(streams, files.graphs), given.master)
    print(f"thalweg: evaluated in {place}" if place.spark is None else f"thalweg: evaluated by {place}", file=sys.stderr)
    return place


def read_recording(path: Path) -> Recording:
    """A recorded stream: one table where it can be read at once, else as `read_stream` has it."""
    body = _bytes(path)
    table = read_columns(body, _kind(body, path), _READER)
    return [table] if table is not None else _items(body, path)


def read_stream(path: Path) -> list[Item]:
    """The items of a recorded stream, each with its time stamp; the name's end tells the format."""
    return _items(_bytes(path), path)


def _kind(body: bytes, path: Path) -> str:
    return media.TIMED if _TIMED_LINE.match(body) else _media(path)


def _items(body: bytes, path: Path) -> list[Item]:
    try:
        return read_items(body, _kind(body, path), _READER, base=path.resolve().as_uri()).items
    except Problem as problem:
        raise _in_body(problem, body, path) from problem


def read_background(path: Path) -> list[Triple]:
    body = _bytes(path)
    try:
        return read_graph(body, _media(path), FILE_LIMITS, base=path.resolve().as_uri())
    except Problem as problem:
        raise _in_body(problem, body, path) from problem


def read_rules(path: Path, name: str) -> RuleSet:
    """The rule set of a file; the end of its name tells the language."""
    media_type = RULE_SET_EXTENSIONS.get(path.suffix.lower())
    if media_type is None:
        raise ValueError(f"{path}: the rule language is not known by its name; known are {', '.join(RULE_SET_EXTENSIONS)}.")
    if name in BUILT_IN_RULES:
        raise ValueError(f"--rules {name}={path}: {name} is built in.")
    return checked(parse_rules(read_text(path), media_type, name))


def read_text(path: Path) -> str:
    """The text of a file, ``-`` of standard input. Raises ValueError where it is not UTF-8, or does not end."""
    try:
        if path.is_file():
            return path.read_text(encoding="utf-8")
        with nullcontext(sys.stdin) if str(path) == "-" else open(path, encoding="utf-8") as file:
            text = file.read(MOST_PIPED + 1)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error
    if len(text) > MOST_PIPED:
        name = "standard input" if str(path) == "-" else path
        raise ValueError(f"{name}: a text that is no file has at most {MOST_PIPED} characters.")
    return text


def _in_body(problem: Problem, body: bytes, path: Path) -> Exception:
    """What is wrong with a file: that it is not UTF-8, whatever its reader has to say of it, or its problem."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(path, error)
    return in_file(problem, path)


def _not_utf8(path: Path, error: UnicodeDecodeError) -> ValueError:
    name = "standard input" if str(path) == "-" else path
    line = error.object.count(b"\n", 0, error.start) + 1
    return ValueError(f"{name}: this is not UTF-8: byte {error.start + 1} (line {line}) is 0x{error.object[error.start]:02X}.")


def _pushed(queries: Mapping[str, Statement]) -> list[str]:
    """The streams that the queries read and do not make."""
    own = set(made(queries))
    return [iri for iri in dict.fromkeys(source.stream for q in queries.values() for source in q.streams) if iri not in own]


def _recordings(given: Iterable[str], queries: Mapping[str, Statement]) -> list[tuple[str, Path]]:
    """The files of recorded streams with their IRIs. One without IRI is of the stream that the queries read."""
    wanted, found = _pushed(queries), list[tuple[str, Path]]()
    for text in given:
        iri, path = named_file(text)
        if iri is None:
            if len(wanted) != 1:
                raise ValueError(f"--stream {text}: write IRI=FILE, for {len(wanted)} streams are read.")
            iri = wanted[0]
        elif iri not in wanted:
            raise ValueError(f"--stream {text}: no query reads this stream; they read {', '.join(wanted) or 'none'}.")
        found.append((iri, path))
    return found


def _with_graphs(queries: dict[str, Statement], given: Iterable[str],
                 rules: Sequence[str]) -> tuple[dict[str, Statement], dict[str, list[Triple]]]:
    """Static graphs by IRI. One without IRI is the graph that the queries name and nobody else gives; where there is none, it is what
    their rules reason with (``USING GRAPH``), and the statements say so."""
    files = [named_file(text) for text in given]
    taken = {iri for iri, _ in files}
    named_here = [source.iri for q in queries.values() for source in (*q.graphs, *q.reasoning_graphs)]
    free = [iri for iri in dict.fromkeys(named_here) if iri not in taken]
    for iri, path in files:
        if iri is not None and iri not in named_here:
            known = ", ".join(dict.fromkeys(named_here)) or "none"
            raise ValueError(f"--graph {iri}={path}: no query names this graph; they name {known}.")
    found: dict[str, list[Triple]] = {}
    for iri, path in files:
        if iri is None and not free:
            if not any(rules or q.rules for q in queries.values()):
                raise ValueError(f"--graph {path}: the query names no graph for it, and no rules that could use it.")
            iri = path.resolve().as_uri()
            queries = {name: changed(q, reasoning_graphs=(*q.reasoning_graphs, GraphSource(iri))) if rules or q.rules else q
                       for name, q in queries.items()}
        found.setdefault(iri or free.pop(0), []).extend(read_background(path))
    return queries, found


def _with_rules(queries: Mapping[str, Statement], given: Iterable[str]) -> tuple[list[str], dict[str, RuleSet]]:
    """The names of rule sets that all queries use, and those that files give. One of a file that a query names is used as the texts say."""
    used = {rule.name for query in queries.values() for rule in query.rules}
    names, found = list[str](), dict[str, RuleSet]()
    for text in given:
        name, equals, file = text.partition("=")
        if equals and name in found:
            raise ValueError(f"--rules {text}: there is a rule set {name} already.")
        if equals:
            found[check_name(name)] = read_rules(Path(file), name)
        if not equals or name not in used:
            names.append(name)
    return names, found


def named_file(text: str) -> tuple[str | None, Path]:
    """``IRI=FILE`` or ``FILE``; both may hold ``=``."""
    read = [(None, Path(text)), *((text[:found.start()].strip("<>"), Path(text[found.end():])) for found in re.finditer("=", text)
                                  if ":" in text[:found.start()])]
    for iri, path in read:
        if path.is_file():
            return iri, path
    for _, path in read:
        if path.exists():
            raise ValueError(f"{path} is not a regular file.")
    raise ValueError(f"There is no file {text.partition('=')[2] or text}.")


def _bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        size = os.fstat(file.fileno()).st_size      # what is written to it from now on is not part of the recording
        return gunzip(file, _ANY, _ANY) if zipped else file.read(size)


def _media(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = media.EXTENSIONS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise ValueError(f"{path}: the format is not known by its name; known are {', '.join(media.EXTENSIONS)}, also with .gz.")
    return kind


def _write(answers: Iterator[ResultEvent], form: str, out: TextIO, several: bool, place: PlaceName) -> None:
    """Write answers as they come, with the name of the query among `several` or a program's stream; in JSON with where it was evaluated."""
    before: str | None = None
    for answer in answers:
        names = ({"query": answer.query} if several else {}) | ({"stream": answer.stream} if answer.stream else {})
        findings = list(answer.meta.get("inconsistencies", []))     # as the member `rsp` of the live feed has it
        if form == "csv":
            text = _as_csv(answer, answer.query != before, names, findings)
        else:
            text = _as_json(answer, names, findings, place) if form == "jsonl" else _as_table(answer, names, findings)
        for begin in range(0, len(text), _PIECE):
            print(text[begin:begin + _PIECE], end="", file=out, flush=True)
        before = answer.query


def _as_json(answer: ResultEvent, name: dict[str, str], findings: list[str], place: PlaceName) -> str:
    shown: dict[str, Any] = {"graph": answer.payload.decode()} if answer.kind == "graph" else {"results": orjson.Fragment(answer.payload)}
    if findings:
        shown["inconsistencies"] = findings
    return orjson.dumps({**name, "at": answer.at_ms, **shown, "executor": place}).decode() + "\n"


def _as_csv(answer: ResultEvent, first: bool, name: dict[str, str], findings: list[str]) -> str:
    """SPARQL CSV with the time in front; the header whenever another query goes on. What is inconsistent goes to standard error."""
    for finding in findings:
        print(" ".join([*name.values(), f"at {answer.at_ms}: inconsistent: {finding}"]), file=sys.stderr)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    head, *rows = _cells(answer, media.CSV)
    if first:
        writer.writerow([*name, "at", *head])
    writer.writerows([*name.values(), answer.at_ms, *row] for row in rows)
    return buffer.getvalue()


def _as_table(answer: ResultEvent, name: dict[str, str], findings: list[str]) -> str:
    """Columns side by side under the time of the evaluation."""
    head, *rows = _cells(answer, media.TSV)
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (head, ["-" * w for w in widths], *rows)]
    title = " ".join([*name.values(), f"at {iso(answer.at_ms) or answer.at_ms}", f"({len(rows)} rows)"])
    lines += [f"inconsistent: {finding}" for finding in findings]
    return f"{title}\n" + "\n".join(f"  {line}" for line in lines) + "\n\n"


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


def in_file(problem: Problem, path: Path) -> Problem:
    return Problem(problem.slug, f"{path}: {problem.detail}", problem.status, problem.errors, problem.extra)
