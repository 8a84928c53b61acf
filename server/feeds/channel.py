"""One query's recent results, shared by all who follow it, with the bytes made of them."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from engine.runtime.resources import ResultEvent
from server.feeds.frames import Frame, full_frames, is_empty, message, result_frames
from server.feeds.options import Variant
from server.feeds.whole import READ_AT_ONCE, Relations
from server.limits import Limits

Listener = Callable[[], None]
_EPOCH = re.compile(r"q(\d+)c(\d+)")
# An event is kept as data, and as it is sent.
_WRITTEN = 2


class Entry:
    """A logged result of a channel with the bytes made of it so far, whose number is `size`."""

    def __init__(self, event: ResultEvent, channel: Channel) -> None:
        event.meta.setdefault("graph", f"{channel.iri}/results/{event.id}")
        self.event, self._channel = event, channel
        self.size = event.size
        self._frames: dict[tuple[Variant, bool], list[Frame]] = {}
        self._empty: dict[str, bool] = {}
        self._lock = threading.Lock()

    def shows(self, variant: Variant) -> bool:
        """Whether it is an event of its own: of all that holds at a T there is one, the last of that T."""
        return variant.mode != "full" or not self.event.meta.get("goesOn")

    def ready(self, variant: Variant, keep_empty: bool) -> bool:
        """Whether `frames` (and `empty`, unless `keep_empty`) answers at once, or is not asked for."""
        return not self.shows(variant) or (variant, False) in self._frames and (keep_empty or variant.mode in self._empty)

    def frames(self, variant: Variant, snapshot: bool = False) -> list[Frame]:
        """The events of this result; with `snapshot` the whole relation as one. Made once for each variant."""
        with self._lock:
            if (variant, snapshot) in self._frames:
                return self._frames[variant, snapshot]
            event, cap = self._seen(variant, snapshot), self._channel.limits.result_event
            made = (full_frames(event, event.full, variant, cap, snapshot=True) if snapshot
                    else result_frames(event, self._before(variant), variant, cap))
            self._frames[variant, snapshot] = made
            if event is not self.event:
                self._empty[variant.mode] = is_empty(event, variant, None)
        self._channel.grow(self, _WRITTEN * sum(frame.size for frame in made))
        return made

    def empty(self, variant: Variant) -> bool:
        """Whether there is nothing in it for ``empty=omit``."""
        with self._lock:
            if variant.mode not in self._empty:
                event = self._seen(variant)
                self._empty[variant.mode] = is_empty(event, variant, self._before(variant))
            return self._empty[variant.mode]

    def _seen(self, variant: Variant, snapshot: bool = False) -> ResultEvent:
        """The result as a variant shows it: of a rule program, in mode full and in snapshots, with all that it holds."""
        whole = self.event.stream is not None and (snapshot or variant.mode == "full")
        return self._channel.relations.at(self.event) if whole else self.event

    def _before(self, variant: Variant) -> bytes | None:
        """The relation that a difference is taken to; None where none is taken."""
        compares = variant.mode == "delta" and not (self.event.added or self.event.removed)
        return self._channel.before(self.event) if compares else None


def order(epoch: str | None) -> tuple[int, int]:
    """The number of the query and of the generation that an epoch is: later ones are greater."""
    found = _EPOCH.fullmatch(epoch or "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def newer(epoch: str | None, known: str | None) -> bool:
    """Whether `epoch` comes after the one that is known, if any is."""
    return known is None or epoch != known and order(epoch) > order(known)      # mostly it is the same, and need not be parsed


class Channel:
    """The ring of one query. Every member is read and changed under `lock`."""

    def __init__(self, name: str, iri: str, engine: Any, limits: Limits) -> None:
        self.name, self.iri = name, iri
        self.lock = threading.Lock()
        self.epoch: str | None = None
        self.newest = self.news = self.followers = self.statuses_lost = self.size = 0
        self.removed: str | None = None
        self.progress: tuple[int, Frame] | None = None
        self.progress_data: dict[str, Any] = {}
        self.statuses: deque[tuple[int, Frame]] = deque()
        self.variants: dict[Variant, int] = {}
        self.listeners: set[Listener] = set()
        self._ring: deque[Entry] = deque()
        self._engine, self.limits = engine, limits
        self.relations = Relations(engine, name, limits.relations_kept)

    def misses(self, event: ResultEvent) -> bool:
        """Whether results between the newest that is known and this one were left out."""
        with self.lock:
            return event.epoch == self.epoch and event.seq > self.newest + 1

    def catch_up(self) -> None:
        """Take from the result log what is newer than the newest that is known."""
        while events := self._engine.results.read(self.name, self.newest, READ_AT_ONCE, self.limits.page_bytes):
            before = self.newest
            if events[0].epoch != self.epoch:
                return      # the notice of its epoch is yet to come
            for event in events:
                self.add(event)
            if self.newest == before:
                return

    def shrink(self) -> int:
        """Give up the oldest result of the ring, but not the last one; how many bytes that was."""
        with self.lock:
            if len(self._ring) < 2:
                return 0
            size = self._ring.popleft().size
            self.size -= size
            return size

    def add(self, event: ResultEvent) -> None:
        """Take a new result: write it for those who follow, keep it in the ring."""
        entry = Entry(event, self)
        with self.lock:
            variants = list(self.variants)
        for variant in filter(entry.shows, variants):
            entry.frames(variant)
        with self.lock:
            if newer(event.epoch, self.epoch):
                self._begin(event.epoch)
            if event.epoch != self.epoch or event.seq <= self.newest:
                return
            if self._ring and event.seq != self.newest + 1:
                self.size = 0
                self._ring.clear()      # a ring has no holes
            self._ring.append(entry)
            self.size += entry.size
            self.newest = event.seq
            self._trim()

    def set_progress(self, data: dict[str, Any]) -> None:
        """Keep the newest progress only."""
        with self.lock:
            self.news += 1
            self.progress, self.progress_data = (self.news, message("progress", **data)), data

    def add_status(self, data: dict[str, Any]) -> None:
        with self.lock:
            self.news += 1
            self.statuses.append((self.news, message("status", **data)))
            if len(self.statuses) > self.limits.statuses_kept:
                self.statuses_lost = self.statuses.popleft()[0]

    def statuses_after(self, seen: int) -> tuple[list[Frame], int]:
        """Under `lock`: the changes of state after number `seen`, a gap before them where some are lost; and the last one's number."""
        if not self.statuses or self.statuses[-1][0] <= seen:   # as at most looks
            return [], seen
        news = [(number, frame) for number, frame in self.statuses if number > seen]
        gap = [message("gap", requested=None, oldestId=None, reason="status", dropped=None)] if self.statuses_lost > seen else []
        return gap + [frame for _, frame in news], news[-1][0]

    def begin(self, epoch: str | None) -> None:
        with self.lock:
            if newer(epoch, self.epoch):
                self._begin(epoch)

    def remove(self, epoch: str | None) -> None:
        """A generation was the query's last. There may be another query of this name already."""
        with self.lock:
            self.removed = epoch or self.epoch or ""

    def has_lost(self, epoch: str | None) -> bool:
        """Whether the query of a generation was removed."""
        removed = self.removed
        return removed is not None and order(epoch)[0] <= order(removed)[0]

    def look(self, epoch: str | None, newest: int) -> None:
        """What the first look at the log found; a notice that came meanwhile knows better."""
        with self.lock:
            if self.epoch is None:
                self._begin(epoch)
                self.newest = newest

    def after(self, epoch: str | None, seq: int, limit: int = 64) -> list[Entry] | None:
        """The next entries of a generation after `seq`, none of another one than the present, of `page_bytes` together (or one that is
        larger); None where the ring does not reach back so far."""
        with self.lock:
            if epoch != self.epoch or seq >= self.newest:
                return []
            if not self._ring or self._ring[0].event.seq > seq + 1:
                return None
            skip = seq + 1 - self._ring[0].event.seq
            found, size = list[Entry](), 0
            for place in range(skip, min(len(self._ring), skip + limit)):
                size += self._ring[place].size
                if found and size > self.limits.page_bytes:
                    break
                found.append(self._ring[place])
            return found

    def wake(self) -> None:
        with self.lock:
            listeners = list(self.listeners)
        for listener in listeners:
            listener()

    def grow(self, entry: Entry, more: int) -> None:
        """Count what was written of a result; the ring's part of it may push others out."""
        with self.lock:
            entry.size += more
            place = entry.event.seq - self._ring[0].event.seq if self._ring else -1
            if 0 <= place < len(self._ring) and self._ring[place] is entry:
                self.size += more
                self._trim()

    def _trim(self) -> None:
        limits = self.limits
        while len(self._ring) > 1 and (len(self._ring) > limits.ring_events or self.size > limits.ring_bytes):
            self.size -= self._ring.popleft().size

    def _begin(self, epoch: str | None) -> None:
        self.epoch, self.newest, self.size = epoch, 0, 0
        self._ring.clear()

    def before(self, event: ResultEvent) -> bytes | None:
        """The relation at the evaluation before; None where that is not of the same generation."""
        with self.lock:
            for entry in reversed(self._ring):
                if entry.event.seq == event.seq - 1 and entry.event.epoch == event.epoch:
                    return entry.event.full
        before = self._engine.results.before(event.query, event.seq)
        return before.full if before is not None and before.epoch == event.epoch else None
