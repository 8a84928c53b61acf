"""The records of the input log: everything that decides a result, in one order, decided once at append.

The result of every query is a function of the sequence of these records (docs/architecture.md, "Order"). Times are ms, IRIs without
brackets, terms canonical N-Triples tokens. Blank nodes are already the item's own.
"""

from dataclasses import dataclass

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Event:
    """An accepted item: `triples` all valid at `t`. `watermark` is the stream's watermark once it is in."""

    position: int
    stream: str
    t: int
    graph: str | None
    triples: tuple[Triple, ...]
    watermark: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The stream's watermark moves to `watermark`: a push of a watermark, or a clock mark of an arrival stream."""

    position: int
    stream: str
    watermark: int


@dataclass(frozen=True, slots=True)
class Idle:
    """The stream was silent for its `idle` time: it holds no other back until its next Event or Mark. With a `watermark`, said of a stream
    that is idle: what it brings when it comes back is not older."""

    position: int
    stream: str
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class Register:
    """A query takes effect at the first T greater than its watermark here; it sees events of later positions only
    (or all from position `since`). Where it makes a stream, `stream` is the IRI of that unless the text gives one. `media` is the language
    of a rule program with a time of its own, which its text does not tell."""

    position: int
    query: str
    text: str
    since: int
    stream: str | None = None
    media: str | None = None


@dataclass(frozen=True, slots=True)
class Unregister:
    position: int
    query: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The query is not evaluated at Ts greater than its watermark here, until its next Resume."""

    position: int
    query: str


@dataclass(frozen=True, slots=True)
class Resume:
    """The paused query goes on: with the Ts that it missed (`backlog`), or at the first T greater than its watermark here."""

    position: int
    query: str
    backlog: bool


@dataclass(frozen=True, slots=True)
class GraphVersion:
    """The static graph `graph` has the content `triples` from here on; None removes it."""

    position: int
    graph: str
    triples: tuple[Triple, ...] | None


@dataclass(frozen=True, slots=True)
class RulesVersion:
    """The rule set `name` has the content `text`, in the language of the type `media`, from here on; None removes it."""

    position: int
    name: str
    media: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evaluation of the query at `tick` went over a limit, and the query fails there: `epoch` is its generation, `detail` says why.

    It stands behind the records that made the evaluation due, and counts there: who reads the log again does not try that evaluation.
    """

    position: int
    query: str
    epoch: str
    tick: int
    limit: str
    detail: str


@dataclass(frozen=True, slots=True)
class End:
    """No stream has more: evaluate up to the last close that still sees an event (the end of a replay, never of a live log)."""

    position: int


Record = Event | Mark | Idle | Register | Unregister | Pause | Resume | GraphVersion | RulesVersion | Verdict | End
