"""Case files (tests/cases/README.md): a folder becomes the records of an input log, and the expected answers.

What an append decides (stamps, lateness, marks, blank nodes) is decided here a second time, independently of the runtime.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyoxigraph

from engine.ir.programs import timed_statement
from engine.ir.statement import Statement, TimeWindow
from engine.records import End, Event, GraphVersion, Idle, Mark, Pause, Record, Register, Resume, RulesVersion, Triple, Unregister
from engine.timeline import MIN
from grammar import parse as parse_anew
from grammar.rule_sets import parse_rules as parse_rules_anew
from tests.case_rows import PREFIXES, Row, read_row, show_row

RULE_MEDIA = {".rifps": "text/x-rif-ps", ".rif": "application/rif+xml", ".lars": "text/x-lars", ".dmtl": "text/x-datalogmtl"}
TIMED_MEDIA = ("text/x-lars", "text/x-datalogmtl")
CASES = Path(__file__).parent / "cases"

# The same texts are read under every treatment.
parse = lru_cache(maxsize=None)(parse_anew)
parse_rules = lru_cache(maxsize=None)(parse_rules_anew)

Answers = dict[str, list[tuple[int, list[Row]]]]


@dataclass(frozen=True, slots=True)
class Item:
    """One stream item of a file: `t` is its time stamp, or for arrival streams the server's clock when it comes."""

    t: int
    graph: str | None
    triples: tuple[Triple, ...]


@dataclass(slots=True)
class Feed:
    """A stream of a case and how far it is: times in ms."""

    iri: str
    items: list[Item]
    arrival: bool
    lateness: int
    max_ahead: int
    idle: bool = False
    watermark: int = MIN
    next: int = 0


@dataclass(frozen=True)
class Case:
    """A folder of tests/cases. `queries` are texts by id, `media` the types of those that are rule programs; the other members
    are those of case.json (tests/cases/README.md)."""

    folder: Path
    about: str
    prefixes: dict[str, str]
    queries: dict[str, str]
    media: dict[str, str]
    streams: dict[str, dict[str, Any]]
    graphs: dict[str, str]
    rules: dict[str, str]
    script: list[list[Any]] | None
    ordered: bool = False
    may_refuse: bool = False
    limit: str | None = None

    @property
    def name(self) -> str:
        """``topic/name``."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    def records(self, shuffle: int | None = None) -> list[Record]:
        """The input log of the case; with `shuffle` (a seed) items arrive in another order, none of them late by that."""
        return list(_Loader(self, None if shuffle is None else random.Random(shuffle)).load())

    @property
    def expected_file(self) -> Path:
        return self.folder / "expected.csv"

    def rule_text(self, file: str) -> tuple[str, str]:
        """The media type and the text of a rule set's file."""
        path = self.folder / file
        return RULE_MEDIA[path.suffix], path.read_text("utf-8")

    def timed_media(self, query: str) -> str | None:
        """The language of a rule program with a time of its own; None for other queries."""
        media = self.media.get(query)
        return media if media in TIMED_MEDIA else None

    @property
    def streams_of_results(self) -> list[str]:
        """The ids of the queries; that of a rule program's stream N has ``/n`` behind it."""
        return [name for query in self.queries for name in (query, *([f"{query}/n"] if query in self.media else []))]

    def expected(self) -> Answers:
        """The expected answers; every query of the case has an entry, a rule program another for its stream N."""
        answers: Answers = {name: [] for name in self.streams_of_results}
        for line in self.expected_file.read_text("utf-8").splitlines()[1:]:
            query, at, text = line.split(",", 2)
            if not answers[query] or answers[query][-1][0] != int(at):
                answers[query].append((int(at), []))
            if text != "-":
                answers[query][-1][1].append(read_row(text, self.prefixes))
        return answers

    def write(self, answers: Answers) -> None:
        """Write `answers` as the expected ones."""
        lines = ["query,at,row"]
        for query in sorted(answers):
            for at, bag in answers[query]:
                shown = [show_row(row, self.prefixes) for row in bag] or ["-"]
                lines += [f"{query},{at},{row}" for row in (shown if self.ordered else sorted(shown))]
        self.expected_file.write_text("\n".join(lines) + "\n", "utf-8")


def find_cases() -> list[Case]:
    """All cases, by name."""
    return [load_case(path.parent) for path in sorted(CASES.glob("*/*/case.json"))]


def load_case(folder: Path) -> Case:
    """Read a folder; members that case.json leaves out have the defaults of tests/cases/README.md."""
    spec = json.loads((folder / "case.json").read_text("utf-8"))
    files = [path for pattern in ("*.rq", "*.query.*") for path in sorted(folder.glob(pattern))]
    queries = {path.name.partition(".")[0]: path.read_text("utf-8") for path in files}
    media = {path.name.partition(".")[0]: RULE_MEDIA[path.suffix] for path in files if path.suffix != ".rq"}
    streams = spec.get("streams") or {path.stem: {} for path in sorted(folder.glob("*.events"))}
    rules = spec.get("rules") or {path.stem: path.name for path in sorted(folder.iterdir())
                                  if path.suffix in RULE_MEDIA and ".query" not in path.suffixes}
    return Case(folder, spec["about"], PREFIXES | spec.get("prefixes", {}), queries, media, streams, spec.get("graphs", {}),
                rules, spec.get("script"), spec.get("ordered", False), spec.get("mayRefuse", False), spec.get("sparkLimit"))


def read_statement(text: str, media: str | None) -> Statement:
    """The statement of a text; `media` is the language of a rule program with a time of its own."""
    return parse(text) if media is None else timed_statement(parse_rules(text, media, "program"), text, media)


def read_events(path: Path, prefixes: dict[str, str]) -> list[Item]:
    """The items of a file of lines ``ms TriG``; ``#`` starts a comment line. A named graph of a line is the graph of its item."""
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items())
    items = []
    for line in path.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            t, _, text = line.partition(" ")
            quads = list(pyoxigraph.parse(head + text, pyoxigraph.RdfFormat.TRIG))
            names = sorted({str(q.graph_name) for q in quads if not isinstance(q.graph_name, pyoxigraph.DefaultGraph)})
            assert len(names) <= 1, f"{path}: an item has one graph: {line}"
            items.append(Item(int(t), names[0] if names else None, _triples(quads)))
    return items


def read_graph(path: Path, prefixes: dict[str, str]) -> tuple[Triple, ...]:
    """The triples of a Turtle file, with the prefixes of the case."""
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items())
    return _triples(list(pyoxigraph.parse(head + path.read_text("utf-8"), pyoxigraph.RdfFormat.TURTLE)))


def _triples(quads: Sequence[pyoxigraph.Quad]) -> tuple[Triple, ...]:
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)


def scoped(triples: Sequence[Triple], mark: str) -> tuple[Triple, ...]:
    """The triples with blank nodes made the item's or graph's own."""
    return tuple((_own(s, mark), p, _own(o, mark)) for s, p, o in triples)


def _own(token: str, mark: str) -> str:
    return f"_:{mark}.{_plain(token[2:])}" if token.startswith("_:") else token


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", label)


def _last_tick(statement: Statement, time: int) -> int:
    """The last evaluation time at or before a time."""
    if statement.on_change or time == MIN:
        return time
    steps = {source.window.step_ms for source in statement.streams if isinstance(source.window, TimeWindow)}
    steps = steps if statement.compute_every_ms is None else {statement.compute_every_ms}
    return max(statement.start_at_ms + (time - statement.start_at_ms) // step * step for step in steps)


class _Loader:
    """Runs the script of a case."""

    def __init__(self, case: Case, rng: random.Random | None) -> None:
        self.case = case
        self.rng = rng
        self.position = 0
        self.clock: int | None = None
        self.registered: dict[str, Statement] = {}
        self.feeds = {name: self._feed(name, spec) for name, spec in case.streams.items()}

    def load(self) -> Iterator[Record]:
        """The records of the script's steps, each run of pushes shuffled if asked for."""
        run: list[tuple[Feed, Item]] = []
        for step, *args in self._script():
            if step == "push":
                run += self._items(*args)
                continue
            yield from self._push(run)
            run = []
            yield from self._step(step, *args)
            if step == "idle":
                self.rng = None  # what a stream that wakes up finds done depends on the order
        yield from self._push(run)

    def _script(self) -> list[list[Any]]:
        """The script with its usual beginning (graphs, rule sets, registrations of queries that no step registers) and end."""
        script = self.case.script
        if script is None:
            items = sorted(((item.t, name) for name, feed in self.feeds.items() for item in feed.items), key=lambda pair: pair[0])
            in_file_order = len(self.feeds) == 1
            script = [["push", name] for name in self.feeds] if in_file_order else [["push", name, 1] for _, name in items]
        later = {args[0] for step, *args in script if step == "register"}
        graphs = [["graph", iri, file] for iri, file in self.case.graphs.items()]
        rules = [["rules", name, file] for name, file in self.case.rules.items()]
        registrations = [["register", query] for query in self.case.queries if query not in later]
        end = [] if script and script[-1][0] in ("stop", "end") else [["end"]]
        return [*graphs, *rules, *registrations, *script, *end]

    def _step(self, step: str, *args: Any) -> Iterator[Record]:
        match step, args:
            case "mark", (name, watermark):
                yield from self._mark(self.feeds[name], watermark)
            case "clock", (ms,):
                self.clock = ms
                for feed in self.feeds.values():
                    if feed.arrival:
                        yield from self._mark(feed, ms)
            case "idle", (name,):
                self.feeds[name].idle = True
                yield Idle(self._next(), self.feeds[name].iri)
            case "register", (query, *since):
                position = self._next()
                media = self.case.timed_media(query)
                self.registered[query] = read_statement(self.case.queries[query], media)
                yield Register(position, query, self.case.queries[query], since[0] if since else position, media=media)
            case "unregister", (query,):
                self.registered.pop(query, None)
                yield Unregister(self._next(), query)
            case "pause", (query,):
                yield Pause(self._next(), query)
            case "resume", (query, how):
                yield Resume(self._next(), query, how == "backlog")
            case "graph", (iri, None):
                yield GraphVersion(self._next(), iri, None)
            case "graph", (iri, file):
                position = self._next()
                yield GraphVersion(position, iri, scoped(read_graph(self.case.folder / file, self.case.prefixes), f"g{position}"))
            case "rules", (name, file):
                yield RulesVersion(self._next(), name, *self.case.rule_text(file))
            case "end", ():
                yield End(self._next())
            case "stop", ():
                pass
            case _:
                raise ValueError(f"{self.case.name}: no such step: {step} {args}")

    def _items(self, name: str, count: int | None = None) -> list[tuple[Feed, Item]]:
        """The next `count` items of a stream, or all that are left."""
        feed = self.feeds[name]
        start, feed.next = feed.next, len(feed.items) if count is None else feed.next + count
        assert feed.next <= len(feed.items), f"{self.case.name}: {name} has no {count} more items"
        return [(feed, item) for item in feed.items[start:feed.next]]

    def _push(self, run: list[tuple[Feed, Item]]) -> Iterator[Record]:
        for feed, item in run if self.rng is None else self._shuffled(run, self.rng):
            yield from self._arrive(feed, item)

    def _arrive(self, feed: Feed, item: Item) -> Iterator[Record]:
        """An item is refused (too far ahead), late (older than the watermark) or taken."""
        t = max(item.t, feed.watermark) if feed.arrival else item.t
        used = self._used(feed) if feed.idle else MIN
        if t < used:
            return
        feed.idle, feed.watermark = False, max(feed.watermark, used)
        if not feed.arrival and (t < feed.watermark or self.clock is not None and t > self.clock + feed.max_ahead):
            return
        if not feed.arrival:
            feed.watermark = max(feed.watermark, t - feed.lateness)
        position = self._next()
        graph = None if item.graph is None else _own(item.graph, f"i{position}")
        yield Event(position, feed.iri, t, graph, scoped(item.triples, f"i{position}"), feed.watermark)
        if feed.arrival:
            yield from self._mark(feed, t)

    def _mark(self, feed: Feed, watermark: int) -> Iterator[Record]:
        feed.watermark = max(feed.watermark, watermark, self._used(feed) if feed.idle else MIN)
        feed.idle = False
        yield Mark(self._next(), feed.iri, feed.watermark)

    def _used(self, feed: Feed) -> int:
        """The last evaluation time of the queries that an idle stream comes to, itself or through others: they went on with the watermark
        of the other streams, and a query with nothing but idle ones as far as those that read what it makes."""
        reads = {query: {source.stream for source in statement.streams} for query, statement in self.registered.items()}
        makers = {statement.name: query for query, statement in self.registered.items() if statement.kind == "stream"}
        reached = dict.fromkeys(self.registered, MIN)

        def below(query: str) -> set[str]:
            return {iri for stream in reads[query] for iri in (below(makers[stream]) if stream in makers else {stream})}

        def state(iri: str) -> tuple[int, bool]:
            if iri in makers:
                own = [feed for feed in self.feeds.values() if feed.iri in below(makers[iri])]
                return _last_tick(self.registered[makers[iri]], reached[makers[iri]]), all(feed.idle for feed in own)
            return next(((feed.watermark, feed.idle) for feed in self.feeds.values() if feed.iri == iri), (MIN, False))

        for _ in range(2 * len(reached)):
            for query, statement in self.registered.items():
                own = [state(iri) for iri in reads[query]]
                readers = [reached[other] for other in reached if statement.kind == "stream" and statement.name in reads[other]]
                awake = [watermark for watermark, idle in own if not idle]
                reached[query] = min(awake) if awake else max([MIN, *(watermark for watermark, _ in own), *readers])
        return max((_last_tick(statement, reached[query]) for query, statement in self.registered.items() if feed.iri in below(query)),
                   default=MIN)

    def _shuffled(self, run: list[tuple[Feed, Item]], rng: random.Random) -> list[tuple[Feed, Item]]:
        """Another order of arrival in which no item is late; streams where one was late, or of arrival time, keep theirs."""
        waiting: dict[str, list[tuple[Feed, Item]]] = {}
        for feed, item in run:
            waiting.setdefault(feed.iri, []).append((feed, item))
        fixed = {iri for iri, pairs in waiting.items() if pairs[0][0].arrival or self._someone_refused(pairs)}
        result = []
        while waiting:
            iri = rng.choice(sorted(waiting))
            pairs = waiting[iri]
            earliest = min(item.t for _, item in pairs)
            admitted = [i for i, (feed, item) in enumerate(pairs) if item.t - feed.lateness <= earliest]
            result.append(pairs.pop(0 if iri in fixed else rng.choice(admitted)))
            if not pairs:
                del waiting[iri]
        return result

    def _someone_refused(self, pairs: Sequence[tuple[Feed, Item]]) -> bool:
        watermark = pairs[0][0].watermark
        for feed, item in pairs:
            if item.t < watermark or self.clock is not None and item.t > self.clock + feed.max_ahead:
                return True
            watermark = max(watermark, item.t - feed.lateness)
        return False

    def _feed(self, name: str, spec: dict[str, Any]) -> Feed:
        items = read_events(self.case.folder / spec.get("file", f"{name}.events"), self.case.prefixes)
        return Feed(spec.get("iri", f"http://ex.org/{name}"), items, spec.get("time", "event") == "arrival",
                    spec.get("lateness", 0), spec.get("maxAhead", 60_000))

    def _next(self) -> int:
        self.position += 1
        return self.position
