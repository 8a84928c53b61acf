"""What the engine tells about its streams, queries, graphs and results: plain values, shaped as in docs/http-api.md."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from engine.ipc import is_packed_table, size_of, unpack, unpack_text
from engine.ir.notation import instant
from engine.output import payload
from engine.records import Triple
from engine.timeline import is_moment

_LOG = logging.getLogger(__name__)
ResultKind = Literal["result", "graph", "boolean"]
RESULT_KINDS: Mapping[str, ResultKind] = {
    "SELECT": "result", "ASK": "boolean", "CONSTRUCT": "graph", "DESCRIBE": "graph", "PROGRAM": "result"}

PROGRAM = "PROGRAM"
"""The form of rule programs."""

OMITTED = "omitted"
"""The reason in the dead letter that stands for all those of a push that are not kept."""

DEFAULT_GRAPH = "urn:x-thalweg:default"
"""The IRI under which the catalog keeps the default graph."""


@dataclass(frozen=True, slots=True)
class Item:
    """A parsed stream item: time stamp in ms where it carries one, graph name token, triples of canonical tokens. Its blank nodes are
    its own, or shared by the items of the stream with the same `scope_ms`."""

    t_ms: int | None
    graph: str | None
    triples: tuple[Triple, ...]
    scope_ms: int | None = None


Recording = Sequence[Item | pa.Table]
"""What a recorded stream has, item by item, or in tables with the columns of `engine.runtime.rows.prepare_table`."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """An item that could not be parsed and was skipped on the pusher's wish; `place` is a line or a graph name."""

    reason: str
    place: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a push. `repeated` is True where the idempotency key was known and this is the first answer again."""

    accepted: int
    late: int
    rejected: int
    first_id: str | None
    last_id: str | None
    watermark_ms: int | None
    errors: tuple[dict[str, Any], ...] = ()
    repeated: bool = False

    @property
    def refused(self) -> bool:
        """Whether there was something, and all of it was refused."""
        return bool(self.rejected) and not self.accepted and not self.late

    def to_json(self) -> dict[str, Any]:
        """The body of the 202 answer."""
        return {"accepted": self.accepted, "late": self.late, "duplicate": 0, "rejected": self.rejected,
                "firstId": self.first_id, "lastId": self.last_id, "watermark": iso(self.watermark_ms), "errors": list(self.errors),
                **({"truncated": True} if self.rejected > len(self.errors) else {})}


@dataclass(frozen=True, slots=True)
class TailEvent:
    """An accepted item as the input tail shows it."""

    position: int
    t_ms: int
    graph: str | None
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class TailPart:
    """A part of the input tail; `whole` says that nothing is missing between the position asked for and the first of `events`."""

    events: list[TailEvent]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An item that was not taken: `reason` is ``late``, ``ahead`` or what was wrong with its text. `more` is how many characters of the
    text are not kept; with the reason `OMITTED`, how many items of the push."""

    stream: str
    position: int
    reason: str
    t_ms: int | None
    text: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream's descriptor with its live state."""

    name: str
    iri: str
    descriptor: dict[str, Any]
    state: dict[str, Any]
    used_by: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self.descriptor, "name": self.name, "iri": self.iri, "state": self.state, "usedBy": list(self.used_by)}


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A registered query; `progress`, `windows` and `makes` are as in docs/http-api.md."""

    name: str
    iri: str
    form: str
    dialect: str
    text: str = field(repr=False)
    output: str
    report: str
    streams: tuple[str, ...]
    graphs: tuple[str, ...]
    rules: tuple[str, ...]
    windows: tuple[dict[str, Any], ...]
    variables: tuple[str, ...]
    state: str
    epoch: str | None
    since_ms: int | None
    restarts: int
    error: str | None
    progress: dict[str, Any]
    options: dict[str, Any]
    makes: dict[str, Any] | None = None
    media: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The query resource without ``subscribers`` and ``links``, which the server adds."""
        return {"name": self.name, "iri": self.iri, "form": self.form, "dialect": self.dialect, "text": self.text, "output": self.output,
                "report": self.report, "streams": list(self.streams), "graphs": list(self.graphs), "rules": list(self.rules),
                "windows": list(self.windows), "vars": list(self.variables), "state": self.state, "epoch": self.epoch,
                "since": iso(self.since_ms), "restarts": self.restarts, "lastError": self.error, "progress": self.progress,
                "options": self.options, "makes": self.makes, "media": self.media}


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A static graph of the catalog; `etag` names its version."""

    iri: str
    triples: int
    etag: str
    used_by: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"iri": self.iri, "triples": self.triples, "etag": self.etag, "usedBy": list(self.used_by)}


@dataclass(frozen=True, slots=True)
class RuleSetInfo:
    """A rule set that ``USING RULES`` may name: `clauses` counts its rules and facts, `etag` names
    its version. One that is built in has neither `media` nor `clauses` nor `text`."""

    name: str
    built_in: bool
    description: str | None
    media: str | None
    clauses: int | None
    etag: str
    used_by: tuple[str, ...] = ()
    text: str | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "builtIn": self.built_in, "description": self.description, "type": self.media,
                "clauses": self.clauses, "etag": self.etag, "usedBy": list(self.used_by)}


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """One logged result: `payload` is what the query's own output operator gives at `at_ms`, `relation` (queries with ISTREAM or
    DSTREAM only) the whole relation there. SELECT and ASK: SPARQL 1.1 Results JSON; CONSTRUCT and DESCRIBE: N-Triples. Both are made
    each time that they are asked for, of what is logged: texts as they are or packed, and relations as packed tables, which few ask for."""

    query: str
    epoch: str
    seq: int
    tick: int
    at_ms: int
    kind: ResultKind
    output: str
    logged: bytes = field(repr=False)
    logged_relation: bytes | None = field(default=None, repr=False)
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.epoch}-{self.seq}"

    @property
    def payload(self) -> bytes:
        return unpack_text(self.logged)

    @property
    def relation(self) -> bytes | None:
        data = self.logged_relation
        if data is None:
            return None
        if not is_packed_table(data):
            return unpack_text(data)
        return payload("ASK" if self.kind == "boolean" else "CONSTRUCT" if self.kind == "graph" else "SELECT", unpack(data))

    @property
    def size(self) -> int:
        """How many bytes its text has, and its relation as it is kept."""
        return size_of(self.logged) + size_of(self.logged_relation or b"")

    @property
    def full(self) -> bytes:
        return self.payload if (whole := self.relation) is None else whole

    @property
    def added(self) -> bool:
        """Whether `payload` is what came in since the evaluation before."""
        return self.output == "istream"

    @property
    def removed(self) -> bool:
        """Whether `payload` is what went out since the evaluation before."""
        return self.output == "dstream"

    @property
    def stream(self) -> str | None:
        """Of a rule program's result: ``p`` for facts that begin to hold, ``n`` for such that cease."""
        return self.meta.get("stream")

    @property
    def windows(self) -> list[dict[str, Any]]:
        """The time windows that were looked at: ``stream``, ``open`` and ``close`` in ms."""
        return self.meta.get("windows", [])  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The oldest and newest seq kept of a query's current epoch; 0, 0 where nothing is."""

    epoch: str | None
    oldest: int
    newest: int


@dataclass(frozen=True, slots=True)
class OneShot:
    """The answer of a one-shot SPARQL query. `table` has a column of tokens per variable, or s p o for graphs; a row where ASK is true."""

    form: str
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a listener may want to know. `kind`: ``result`` (with `event`), ``progress``, ``status`` (with `data`), ``removed``,
    ``epoch`` (a new generation), ``engine`` (state of the whole engine)."""

    kind: Literal["result", "progress", "status", "removed", "epoch", "engine"]
    query: str | None = None
    event: ResultEvent | None = None
    data: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[Notice], None]


class Listeners:
    """Called from the engine's threads, one notice after another."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every notice, until the function returned is called."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
        return unsubscribe

    def notify(self, notice: Notice) -> None:
        for listener in list(self._listeners):
            try:
                listener(notice)
            except Exception:  # a listener's fault must not stop the pump
                _LOG.exception("a listener failed")


def iso(ms: int | None) -> str | None:
    """A time as xsd:dateTime in UTC, with milliseconds only where there are some; None for none (or beyond the calendar)."""
    return instant(ms) if ms is not None and is_moment(ms) else None
