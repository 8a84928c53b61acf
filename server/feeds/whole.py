"""What a rule program has told to hold, as whole relations: now, and as each of its results left it.

The log has what begins and what ceases. What holds at the last result is kept beside it, and what held at another follows: forwards with
what begins and without what ceases, backwards the other way round. So nothing is logged for it, and an old result is answered too.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa

from engine.runtime.errors import EngineError
from engine.runtime.holding import Held
from engine.output import payload
from engine.runtime.resources import PROGRAM, ResultEvent

_PAGE = 64
READ_AT_ONCE = 16   # results
_BINDINGS = b',"results":{"bindings":['


def latest_whole(engine: Any, name: str) -> ResultEvent | None:
    """The last result of a program with all that it holds now; None before the first one."""
    held: Held = engine.held(name)
    last = next(iter(engine.results.read(name, held.seq - 1, 1)), None)
    if last is None or (last.epoch, last.seq) != (held.epoch, held.seq):
        return None
    return _with_all(last, _counted(held.now), held.most, True)


@dataclass(slots=True)
class _Place:
    """What held at the result `seq`; `known` where all results on the way to it are whole."""

    seq: int
    rows: Counter[bytes]
    known: bool = True

    def move(self, event: ResultEvent, forwards: bool, open_ended: bool) -> None:
        """Take a result in, or back."""
        begun, ceased = _changes(event, open_ended)
        self.rows.update(begun if forwards else ceased)
        self.rows.subtract(ceased if forwards else begun)
        for row in (*begun, *ceased):
            if not self.rows[row]:
                del self.rows[row]
        self.seq = event.seq if forwards else event.seq - 1
        self.known = self.known and not event.meta.get("truncated")


class Relations:
    """The relations of one program at its results. So many `places` are remembered: of those who
    follow the program, and of those who read its older results."""

    def __init__(self, engine: Any, name: str, places: int) -> None:
        self._engine, self._name, self._most = engine, name, places
        self._places: list[_Place] = []     # the last one was used last
        self._epoch = ""
        self._rows, self._open_ended = 0, False
        self._lock = threading.Lock()

    def at(self, event: ResultEvent) -> ResultEvent:
        """A result with all that it leaves; where not all is known any more, it is said to be cut."""
        with self._lock:
            place = self._near(event) or self._anew(event)
            if event.epoch == self._epoch:
                self._places = [*self._places, place][-self._most:]
            return _with_all(event, place.rows, self._rows, place.known)

    def _near(self, event: ResultEvent) -> _Place | None:
        """A place that stood nearby, now at a result."""
        near = [place for place in self._places if abs(place.seq - event.seq) <= _PAGE] if event.epoch == self._epoch else []
        if not near:
            return None
        place = min(near, key=lambda place: abs(place.seq - event.seq))
        self._places.remove(place)
        self._go(place, event)
        return place if place.known else None

    def _anew(self, event: ResultEvent) -> _Place:
        """From the last result of all to this one."""
        try:
            held: Held = self._engine.held(self._name)
        except EngineError:     # it was removed
            return _Place(event.seq, Counter(), False)
        if held.epoch != self._epoch:
            self._places = []
        self._epoch, self._rows, self._open_ended = held.epoch, held.most, held.open_ended
        if held.epoch != event.epoch:
            return _Place(event.seq, Counter(), False)
        place = _Place(held.seq, _counted(held.told))
        self._go(place, event)
        return place

    def _go(self, place: _Place, event: ResultEvent) -> None:
        """Go to a result, as far as the log still has what is between."""
        if place.seq == event.seq - 1:
            place.move(event, True, self._open_ended)
        elif place.seq < event.seq:
            for one in self._between(place.seq, event.seq):
                place.move(one, True, self._open_ended)
        else:
            for one in reversed(list(self._between(event.seq, place.seq))):
                place.move(one, False, self._open_ended)
        place.known = place.known and place.seq == event.seq

    def _between(self, after: int, last: int) -> Iterator[ResultEvent]:
        """The results after a seq, up to another."""
        while after < last and (page := self._engine.results.read(self._name, after, READ_AT_ONCE)):
            for event in page:
                if event.seq != after + 1 or event.seq > last:
                    return
                yield event
                after = event.seq


def _changes(event: ResultEvent, open_ended: bool) -> tuple[list[bytes], list[bytes]]:
    """The rows that a result adds and those that it takes away."""
    rows = orjson.loads(event.payload)["results"]["bindings"]
    gone = [orjson.dumps(row) for row in event.meta.get("unsaid", ())]
    if not event.removed:
        return [orjson.dumps(row) for row in rows], gone
    return [], [*gone, *(orjson.dumps({name: cell for name, cell in row.items() if not open_ended or name != "until"}) for row in rows)]


def _counted(table: pa.Table) -> Counter[bytes]:
    return Counter(map(orjson.dumps, orjson.loads(payload(PROGRAM, table))["results"]["bindings"]))


def _with_all(event: ResultEvent, rows: Counter[bytes], most: int, known: bool) -> ResultEvent:
    """A result that shows rows, in the order of their text, at most so many."""
    head, _, _ = event.payload.partition(_BINDINGS)
    ordered = sorted(rows.elements())
    meta: dict[str, Any] = {key: value for key, value in event.meta.items() if key not in ("stream", "truncated", "limit")}
    if len(ordered) > most or not known:
        meta |= {"truncated": True, "limit": most}
    text = head + _BINDINGS + b",".join(ordered[:most]) + b"]}}"
    return replace(event, logged=text, logged_relation=None, output="rstream", meta=meta)
