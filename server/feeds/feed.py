"""One client's way through a query's results: hello, what it missed or a snapshot, then everything new, each exactly once.

Pure of sockets and clocks: `open` and `poll` give the frames that are due, and the driver sends them. The place in the result log is
the only state that matters: a client that the ring has gone past reads the log, and is told so (``gap``) where it comes no nearer."""

import math
from collections.abc import Callable
from typing import Any

from engine.ir.notation import date_time_ms
from engine.runtime.resources import PROGRAM, QueryInfo, ResultEvent, iso
from server.feeds.channel import Channel, Entry, Listener, newer
from server.feeds.exchange import Exchange
from server.feeds.frames import Ending, Frame, bye, full_frames, message
from server.feeds.options import Options, parse_id
from server.feeds.whole import latest_whole
from server.problems import Problem

_PAGE = 64


def streams_of(info: QueryInfo, options: Options) -> str:
    """The streams of a rule program that are asked for, of ``p`` and ``n``; both for all that holds, none for other queries."""
    program, whole = info.form == PROGRAM, options.mode == "full"
    if options.stream is not None and (whole or not program):
        why = "says which changes are told; mode=full is all that holds" if program else "is for rule programs"
        raise Problem("unknown-parameter", f"stream= {why}.", extra={"parameter": "stream"})
    if not program:
        return ""
    return "pn" if whole else options.stream or "p"


class Feed(Ending):
    """Follows one query. Call `open` once, then `poll` whenever there is news, and `close` at the end."""

    def __init__(self, exchange: Exchange, name: str, options: Options, listener: Listener, links: dict[str, str] | None = None) -> None:
        """Blocks for a look at the catalogue and the log; raises the problem of a query that cannot be followed."""
        self._exchange, self.name, self._options, self._listener = exchange, name, options, listener
        self._results = exchange.engine.results
        self.info: QueryInfo = exchange.engine.query(name)
        self._links = links or {}
        self._streams = streams_of(self.info, options)
        self._variant = options.variant(self.info.output)
        self.channel: Channel = exchange.join(self.info, self._variant, listener)
        self.limits = exchange.limits
        self._epoch: str | None = None
        self._seq = self._known = self._sent = 0
        self._live = False
        self._nearest: tuple[float, int] | None = None  # of a live one: when it last was on the ring or came nearer, and how far behind
        self._status_seen = self._progress_seen = self.channel.news
        self._rated: Entry | None = None
        self._rated_first, self._rated_count = "", 0
        self._rate_due = self._progress_due = 0.0
        self._untell: Callable[[], object] = lambda: None

    @property
    def place(self) -> str:
        """Where the client is; before the first result the number is 0."""
        return f"{self._epoch}-{self._seq}"

    @property
    def position(self) -> str:
        """The id of the last event that the client has, or ``none``."""
        return self.place if self._epoch and self._seq else "none"

    def close(self) -> None:
        self._exchange.leave(self.channel, self._variant, self._listener)
        self._untell()

    def open(self, now_ms: int) -> list[Frame]:
        """The first frames: hello, then a gap or a snapshot where there is one. May block (it reads the log)."""
        bounds, epoch = self._results.bounds(self.name), self.info.epoch
        if self._options.until_ms is not None:
            self._untell = self._exchange.engine.tell_when(self.name, self._options.until_ms)
        oldest, newest = (bounds.oldest, bounds.newest) if bounds.epoch == epoch else (0, 0)
        self._epoch, self._seq, self._known = epoch, newest, newest
        resumed, frames = self._place(oldest, newest)
        hello = {"query": self.name, "form": self.info.form, "vars": list(self.info.variables), "mode": self._variant.mode,
                 "output": self.info.output, "resumed": resumed, "from": self.position if resumed else None, "state": self.info.state,
                 "heartbeatSeconds": self.limits.heartbeat_seconds, "oldestId": self._id(oldest), "newestId": self._id(newest),
                 "serverTime": iso(now_ms), "links": self._links}
        return [message("hello", **hello), *frames]

    def poll(self, now_s: float, blocking: bool) -> list[Frame] | None:
        """The frames that are due at the monotonic time `now_s`, none where nothing is new; None where only a call that may
        block (for the log, or to write a result in this client's way) can tell."""
        frames: list[Frame] = []
        channel = self.channel
        if newer(channel.epoch, self._epoch):
            if channel.has_lost(self._epoch):
                return self.end("dropped", False)
            if not blocking:
                return None
            frames += self._resync("new-run", self._id(self._seq))
        entries = channel.after(self._epoch, self._seq, _PAGE)
        on_ring = entries is not None
        if entries is None:
            if not blocking:
                return None
            entries = self._behind(now_s, frames)
        elif not blocking and not all(entry.ready(self._variant, self._options.keep_empty) for entry in entries):
            return None
        elif not entries:
            self._live = True
        if self._live and on_ring:
            self._nearest = now_s, 0
        for entry in entries:
            self._take(entry, frames)
            if self.done:
                return frames
        self._flush_rated(now_s, frames)
        self._tell(now_s, bool(frames), frames)
        return frames

    def due_in(self, now_s: float) -> float | None:
        """Seconds until `poll` has something to do without news (``rate``, held back progress); None for never."""
        progress = self.channel.progress
        waiting = [self._rate_due] if self._rated else []
        waiting += [self._progress_due] if progress is not None and progress[0] > self._progress_seen else []
        return max(0.0, min(waiting) - now_s) if waiting else None

    def _place(self, oldest: int, newest: int) -> tuple[bool, list[Frame]]:
        """Set the place to begin at; whether the client's own place could be kept, and the frames that say so."""
        options = self._options
        wanted = options.last_event_id or options.since
        if wanted is None or wanted == "latest" or (options.last_event_id == "none"):
            usual = wanted != "latest" and (not self._streams or self._variant.mode == "full")
            show = options.snapshot if options.snapshot is not None else usual
            return False, self._snapshot() if show else []
        if wanted == "earliest":
            self._seq = max(0, oldest - 1)
        elif isinstance(wanted, int):
            self._seq = max(self._results.seq_at(self.name, wanted), oldest - 1) if newest else 0
        else:
            place = parse_id(wanted)
            if place is None or place[0] != self._epoch or place[1] > newest:
                return False, self._resync("new-run", wanted)
            if place[1] < oldest - 1:
                return False, self._resync("retention", wanted, oldest - 1 - place[1])
            self._seq = place[1]
            return True, self._snapshot() if options.snapshot else []
        return False, []

    def _snapshot(self) -> list[Frame]:
        """The relation at the last evaluation, and the place just after it."""
        if (found := self._last()) is None:
            return []
        event, frames = found
        self._seq = event.seq
        self._sent += 1
        self.done = self._options.limit is not None and self._sent >= self._options.limit
        return frames + ([bye("limit", False)] if self.done else [])

    def _last(self) -> tuple[ResultEvent, list[Frame]] | None:
        """The last result, and the relation there as frames; None before the first one."""
        if self._streams:
            whole = latest_whole(self._exchange.engine, self.name)
            if whole is None or whole.epoch != self._epoch:
                return None
            return whole, full_frames(whole, whole.payload, self._variant, self.limits.result_event, snapshot=True)
        event: ResultEvent | None = self._results.latest(self.name)
        if event is None or event.epoch != self._epoch:
            return None
        return event, Entry(event, self.channel).frames(self._variant, snapshot=True)

    def _resync(self, reason: str, requested: str | None, dropped: int = 0) -> list[Frame]:
        """Continuity is lost: a gap, then a snapshot."""
        if newer(self.channel.epoch, self._epoch):
            self._epoch, self._known = self.channel.epoch, 0
        self._rated, newest = None, self.channel.newest if self.channel.epoch == self._epoch else 0
        bounds = self._results.bounds(self.name)
        self._seq = max(newest, bounds.newest if bounds.epoch == self._epoch else 0)
        oldest = self._id(bounds.oldest if bounds.epoch == self._epoch else 0)
        gap = message("gap", requested=requested, oldestId=oldest, reason=reason, dropped=dropped)
        return [gap, *(self._snapshot() if self._options.snapshot is not False else [])]

    def _behind(self, now_s: float, frames: list[Frame]) -> list[Entry]:
        """The ring does not reach back to the client: read the log, or, for one that was live before and is slow, skip to the newest."""
        dropped = self.channel.newest - self._seq
        if self._is_slow(now_s, dropped):
            frames += (self.end("slow-consumer", True) if self._options.disconnect
                       else self._resync("slow-consumer", self._id(self._seq), dropped))
            return []
        events = self._results.read(self.name, self._seq, _PAGE, self.limits.page_bytes)
        if events and events[0].epoch != self._epoch:
            return []
        if not events or events[0].seq > self._seq + 1:
            first = events[0].seq if events else self.channel.newest + 1
            frames += self._resync("retention", self._id(self._seq), first - self._seq - 1)
            return []
        return [Entry(event, self.channel) for event in events]

    def _is_slow(self, now_s: float, behind: int) -> bool:
        """Whether a client that was live has come no nearer for `slow_seconds`. Many results at once make none slow."""
        if self._nearest is None:
            return False
        since, before = self._nearest
        if now_s - since >= self.limits.slow_seconds and behind >= before:
            return True
        if not before or behind < before:
            self._nearest = now_s, behind
        return False

    def _take(self, entry: Entry, frames: list[Frame]) -> None:
        options, event = self._options, entry.event
        if options.until_ms is not None and event.at_ms > options.until_ms:
            self._end_until(frames)
            return
        self._seq = event.seq
        if not entry.shows(self._variant) or event.stream is not None and event.stream not in self._streams:
            return
        if not options.keep_empty and entry.empty(self._variant):
            return
        if options.rate_ms:
            if self._rated is None:
                self._rated_first, self._rated_count = event.id, 0
            self._rated = entry     # only the latest: a slow client must not hold what it will not get
            self._rated_count += 1
            return
        self._send(entry, frames)

    def _send(self, entry: Entry, frames: list[Frame]) -> None:
        frames += entry.frames(self._variant)
        self._sent += 1
        if self._options.limit is not None and self._sent >= self._options.limit:
            frames += self.end("limit", False)

    def _flush_rated(self, now_s: float, frames: list[Frame]) -> None:
        """With ``rate``: the latest of the results since the last one that was sent, and how many were left out."""
        entry = self._rated
        if entry is None or now_s < self._rate_due:
            return
        if left_out := self._rated_count - 1:
            frames.append(message("gap", requested=self._rated_first, oldestId=entry.event.id, reason="rate", dropped=left_out))
        self._rated, self._rate_due = None, now_s + self._options.rate_ms / 1000
        self._send(entry, frames)

    def _tell(self, now_s: float, visible: bool, frames: list[Frame]) -> None:
        """Progress (where no result said so, at most once a second), changes of state, removal."""
        if self.done:
            return
        with self.channel.lock:
            progress = self.channel.progress
            begun = self.channel.epoch == self._epoch
            watermark = begun and self.channel.progress_data.get("watermark") or self.info.progress.get("watermark")
            newest = max(self.channel.newest if begun else 0, self._known)
            statuses, self._status_seen = self.channel.statuses_after(self._status_seen)
        frames += statuses
        if progress is not None and progress[0] > self._progress_seen and (visible or now_s >= self._progress_due):
            self._progress_seen = progress[0]
            if not visible:
                frames.append(progress[1])
                self._progress_due = now_s + self.limits.progress_seconds
        if self.channel.has_lost(self._epoch):
            frames += self.end("dropped", False)
        elif self._options.until_ms is not None and self._seq >= newest and self._passed(watermark, self._options.until_ms):
            self._end_until(frames)

    def _end_until(self, frames: list[Frame]) -> None:
        self._flush_rated(math.inf, frames)
        if not self.done:
            frames += self.end("until", False)

    def _passed(self, watermark: Any, until_ms: int) -> bool:
        """Whether no result at or before `until_ms` can come any more: reports on change tell of the instant before the watermark."""
        ms = date_time_ms(watermark) if isinstance(watermark, str) else watermark
        return isinstance(ms, int) and ms > until_ms - (self.info.report != "change")

    def progress(self) -> list[Frame]:
        with self.channel.lock:
            return [self.channel.progress[1]] if self.channel.progress else []

    def _id(self, seq: int) -> str | None:
        return f"{self._epoch}-{seq}" if self._epoch and seq else None
