"""What a client asks of a feed (docs/http-api.md, "GET /queries/{name}/results")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from engine.ir.notation import date_time_ms
from engine.runtime.streams import duration_ms
from engine.timeline import is_moment
from server.formats.values import choice, count, flag, moment
from server.problems import Problem, unknown_parameter

PARAMETERS = ("mode", "snapshot", "since", "last_event_id", "until", "limit", "empty", "rate", "overflow", "graph-format", "stream")
MANY_PARAMETERS = ("query", "mode", "snapshot", "empty", "rate", "overflow", "graph-format", "last_event_id")
TAIL_PARAMETERS = ("limit", "since")
_number = count((1 << 31) - 1, 1)


@dataclass(frozen=True, slots=True)
class Variant:
    """How events are written; feeds of one variant share their bytes."""

    mode: str
    graph_format: str = "jsonld"


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of one feed. Times in ms; `mode` None is the query's own; `snapshot` None is "where it makes sense"; `stream` is
    which results of a rule program are wanted: what begins to hold (None or ``p``), what ceases (``n``), or both."""

    mode: str | None = None
    snapshot: bool | None = None
    since: str | int | None = None
    last_event_id: str | None = None
    until_ms: int | None = None
    limit: int | None = None
    keep_empty: bool = True
    rate_ms: int = 0
    disconnect: bool = False
    graph_format: str = "jsonld"
    stream: str | None = None

    def variant(self, output: str) -> Variant:
        """The variant for a query with that output operator: ISTREAM and DSTREAM are deltas by nature."""
        return Variant(self.mode or ("full" if output == "rstream" else "delta"), self.graph_format)


def parse_options(query_string: str, last_event_id: str | None, known: Sequence[str] = PARAMETERS) -> tuple[Options, list[str]]:
    """The options in a query string, and its ``query`` parameters. ``Last-Event-ID`` wins over parameters."""
    values: dict[str, str] = {}
    queries: list[str] = []
    for name, value in parse_qsl(query_string, keep_blank_values=True):
        if name not in known:
            raise unknown_parameter(name, known)
        if name == "query":
            queries.append(value)
        elif name in values:
            raise _bad(name, "given more than once")
        else:
            values[name] = value
    read = partial(_value, values)
    options = Options(
        mode=read("mode", choice("full", "delta")), snapshot=read("snapshot", flag), since=read("since", _since),
        last_event_id=last_event_id or values.get("last_event_id") or None, until_ms=read("until", moment), limit=read("limit", _number),
        keep_empty=read("empty", choice("include", "omit")) != "omit", rate_ms=read("rate", duration_ms) or 0,
        disconnect=read("overflow", choice("coalesce", "disconnect")) == "disconnect",
        graph_format=read("graph-format", choice("jsonld", "trig", "nquads")) or "jsonld", stream=read("stream", choice("p", "n", "pn")))
    if options.rate_ms and options.mode == "delta":
        raise _bad("rate", "leaves events out, which a delta feed must not do")
    return options, list(dict.fromkeys(queries))


def parse_tail(query_string: str, last_event_id: str | None) -> tuple[int | None, int | None]:
    """``since`` (a position) and ``limit`` of the tail of a stream."""
    values = dict(parse_qsl(query_string, keep_blank_values=True))
    for name in values:
        if name not in TAIL_PARAMETERS:
            raise unknown_parameter(name, TAIL_PARAMETERS)
    if last_event_id:
        values["since"] = last_event_id
    return _value(values, "since", _position), _value(values, "limit", _number)


def _value(values: dict[str, str], name: str, read: Callable[[str], Any]) -> Any:
    """The value of a name through its reading function; None where there is none."""
    try:
        return read(values[name]) if name in values else None
    except ValueError as error:
        raise _bad(name, str(error)) from error


def _position(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 62):
        raise ValueError("expected the id of an item")
    return int(text)


def _since(text: str) -> str | int:
    """``earliest``, ``latest``, an id, or a time in ms."""
    ms = date_time_ms(text.replace(" ", "+"))
    if ms is None and text not in ("earliest", "latest") and not parse_id(text):
        raise ValueError("expected an event id, a time, earliest or latest")
    if ms is not None and not is_moment(ms):
        raise ValueError("expected a time within the years 1 to 9999")
    return text if ms is None else ms


def parse_id(text: str) -> tuple[str, int] | None:
    """(epoch, seq) of ``{epoch}-{seq}``; None where it is no such id."""
    epoch, dash, seq = text.rpartition("-")
    if not (dash and epoch.isascii() and epoch.isalnum() and seq.isascii() and seq.isdigit() and len(text) <= 100 and int(seq) < 1 << 62):
        return None
    return epoch, int(seq)


def _bad(name: str, why: str) -> Problem:
    return Problem("unknown-parameter", f"{name}: {why}.", extra={"parameter": name})
