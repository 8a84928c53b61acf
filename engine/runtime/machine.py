"""The running parts and their lives: data folder, input log, evaluator, pump, feed, timer; start, recovery, failure, stop.

Start-up is in two steps: what is quick (lock, database, end of the log) at once, Spark and the state of the queries in a thread.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from engine.compiler import Catalog
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.limits import LimitExceeded
from engine.records import Verdict
from engine.runtime.ahead import START
from engine.runtime.append import Appender
from engine.runtime.source import Source
from engine.runtime.backend import Backend, Feed
from engine.runtime.batch import EvaluatorDownError, Limits
from engine.runtime.clock import Clock
from engine.runtime.describe import progress
from engine.runtime.errors import EngineError, unavailable
from engine.runtime.keeper import LogKeeper
from engine.runtime.log import LogFile, LogFolder
from engine.runtime.log_writer import Decide, LogWriter
from engine.runtime.meters import Meters
from engine.runtime.owner import Owner
from engine.runtime.pump import Pump
from engine.runtime.query import Compiled
from engine.runtime.receipts import receipt_of
from engine.runtime.recovery import Recovery
from engine.runtime.resources import Listener, Notice
from engine.runtime.results import ResultLog, Retention
from engine.runtime.room import Room, is_full
from engine.runtime.rows import ROWS, Control, Kind, controls, verdict_payload
from engine.runtime.rule_store import ParseRules
from engine.runtime.set_aside import SetAside, Trouble
from engine.runtime.settings import Settings
from engine.runtime.snapshot import Snapshot, snapshot_of
from engine.runtime.timer import Timer
from engine.runtime.view import View
from engine.runtime.watch import Sight, Watch
from engine.supervision.patience import Patience
from engine.supervision.worker import Worker

_LOG = logging.getLogger(__name__)
_WARM_UP_BATCHES = 6
_END_S = 30.0     # so long the pump may take to end before the evaluator is started again
_MOST_NEWER_ROWS = 400_000
_FEW_FILES, _FEW_BYTES = 4, 500_000     # so much is read through Spark; more of it at once is read faster here


class Machine:
    """Everything behind `service.Engine`. `state`: ``starting``, ``running``, ``restarting`` (the evaluator is started again),
    ``stopping`` or ``failed``; `progress` says more. `_life` numbers the starts of the evaluator: what comes from one before the last is
    not heard."""

    def __init__(self, settings: Settings, parse: Callable[[str], Statement], parse_rules: ParseRules, clock: Clock,
                 backend: Backend) -> None:
        self.settings, self.clock, self.backend = settings, clock, backend
        self.state, self.progress = "starting", "not started"
        self.snapshot = Snapshot()
        self._meters = Meters()
        self._parse, self._parse_rules = parse, parse_rules
        self._listeners: list[Listener] = []
        self._changed = threading.Condition()
        self._position = 0
        self._ahead = False
        self._without_room: str | None = None
        self._closing = threading.Event()
        self._to_pause = settings.paused
        self._opened = ExitStack()
        self._is_open = False
        self._feed: Feed | None = None
        self._owner: Owner | None = None
        self._pump: Pump | None = None
        self._life = 0
        self._failure: BaseException | None = None
        self._patience = Patience(settings.restarts_in_a_row, settings.restart_wait_s)
        self._starter: Worker | None = None     # the first start, or the last one since
        self._watch = Watch(settings, self._sight, backend.alive, self._broken)

    # --- start

    def start(self) -> None:
        """Open the data folder, then go on in a thread; `state` becomes ``running``, or ``failed``."""
        try:
            self._open()
        except BaseException as failure:  # whatever it was, nothing stays open
            self.state, self.progress = "failed", str(failure)
            self._opened.close()
            raise
        self._starter = Worker("start-up", self._start_up, self._fail, most=0)
        self._starter.start()

    def _open(self) -> None:
        own = self.settings
        for folder in (own.data, own.graph_folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._opened.enter_context(_lock(own.data / "lock"))
        self.aside, self.room = SetAside(own.data / "set-aside"), Room(own.data, own.reserve_bytes)
        self.results = ResultLog(own.database, Retention(own.result_count, own.result_age_ms, own.result_bytes), own.dead_letters)
        self._opened.callback(self.results.close)
        self.clock.not_before(self.results.meta("clock", 0))
        self.folder = LogFolder(own.log_folder, own.archive_folder, self.aside)
        self._position = self.results.position
        self.writer = LogWriter(self.folder, self._log_end(), self.clock.now_ms, own.commit_interval_ms, self._arrival_streams,
                                lambda: self._position, self._fail)
        self.timer = Timer(self.clock, self.writer, self._fail)
        self.keeper = LogKeeper(self.folder, self.room, own.archive_files, lambda: self._position, self._needed, self._seen)
        self.writer.start()
        for stop in (self._stop_parts, self.writer.stop, self.timer.stop):     # the last one is stopped first
            self._opened.callback(stop)
        self._is_open = True

    def _log_end(self) -> Appender:
        """The end of the log: the streams as the result log has them, and what came after."""
        now, states = self.clock.now_ms(), self.results.stream_states()
        end, recovery = Appender(self.results.position + 1), Recovery(self._parse, self._parse_rules)
        end.catalogue = recovery.catalogue(self.results)
        for _, iri, descriptor in self.results.streams():
            end.sources[iri] = Source.of(descriptor, states.get(iri, {}), now)
        for stream, text in self.results.receipts(now):
            kept = receipt_of(text)
            end.keys[stream, kept.key] = kept
        for table in self.folder.recover(self.results.position):
            end.follow(table, now)
            end.catalogue = recovery.follow(end.catalogue, table)
        end.position = self.folder.holes.after(end.position - 1)
        return end

    def _start_up(self) -> None:
        try:
            self._bring_up(self._life)
            self.writer.call(lambda end, now: end.stay_awake(now))
            self.timer.start()
            self.keeper.worker.start()
            self._watch.worker.start()
            self._become("running", "ready")
        except Exception as failure:  # shown by /health/ready; nothing else can be done with it
            if self._closing.is_set():
                self.backend.stop()
                return
            _LOG.exception("the engine did not start")
            self._fail(failure)

    def _bring_up(self, life: int) -> None:
        """Start the evaluator, take up the queries where the result log ends, and let the feed catch up with the input log."""
        self._say("starting Spark")
        executor = self.backend.start(self._say, partial(self._broken, life))
        if self.settings.warm_up:
            self._say("warming up")
            self.backend.warm_up(self._say)
        self._say("restoring the state of the queries")
        own = self.settings
        limits = Limits(own.ticks_per_job, own.max_result_rows, tail=own.tail_items, tail_bytes=own.tail_bytes,
                        evaluation=own.evaluation, commit=own.commit_evaluations)
        owner = self._owner = Owner(partial(self._broken, life))
        pump = Pump(executor, self.results, self._parse, self._recompile, parse_rules=self._parse_rules,
                    graph_folder=self.settings.graph_folder, limits=limits, now=self.clock.now_ms, alive=self.backend.alive,
                    history=self.folder.history, following=self.folder.holes.after, aside=self.aside,
                    full=partial(self._wait_for_room, life), decide=self._decide, later=self._later, stands=self._stands)
        owner.call(pump.restore)
        if self._to_pause:
            self._pause_all(pump)
            self._to_pause = False
        self.snapshot = snapshot_of(pump, self._meters.measured())
        with self._changed:
            self._pump, self._position = pump, pump.position
        self._begin_feed(life)

    def _begin_feed(self, life: int) -> None:
        """Start the feed, catch up with the log, and send a few empty records through: the first batches are slow."""
        self.keeper.merge(1)
        self._clear_checkpoints()
        self._feed = self.backend.feed(partial(self._batch, life), partial(self._broken, life))
        self._feed.start()
        end = max((file.last for file in self.folder.waiting(self._position)), default=0)
        if end > self._position:
            self._say(f"catching up with the input log: {end - self._position} records")
            self.wait_for(end, None, life)
        for number in range(_WARM_UP_BATCHES if self.settings.warm_up else 1):
            self._say(f"warming up the pump, batch {number + 1}")
            self.wait_for(self._append(lambda end, now: end.command(Kind.NOTE, "", {"started": now})), None, life)

    def _append(self, decide: Decide[int]) -> int:
        """Append what can be done without where there is no room; the position of its record, or 0."""
        try:
            return self.writer.call(decide)
        except EngineError as full:
            if not is_full(full):
                raise
            _LOG.warning("%s", full)
            return 0

    def _clear_checkpoints(self) -> None:
        """The checkpoints of a feed before are of no use; what cannot be removed must not hinder the new one."""
        shutil.rmtree(self.settings.checkpoint_folder, ignore_errors=True)
        if self.settings.checkpoint_folder.exists():
            self.aside.move(self.settings.checkpoint_folder, "old checkpoints that cannot be removed")

    # --- stop

    def stop(self) -> None:
        """Finish what was begun, keep everything, stop Spark. Safe to call at any time, more than once."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self.state != "failed":
            self._become("stopping", "stopping")
        with self._changed:
            self._changed.notify_all()
        self._opened.close()

    def _stop_parts(self) -> None:
        """Stop what works on the data folder beside the log's end."""
        self.keeper.stop()
        self._watch.stop()
        if self._starter is not None and self._life:
            self._starter.join(_END_S)
        self._end_life(None)

    def _end_life(self, within_s: float | None) -> None:
        """End feed, evaluator and owner, in an order in which none waits for another that is dead. RuntimeError where the owner does not
        end in time: its pump may still write."""
        feed, owner = self._feed, self._owner
        for part in (feed, self.backend) if self.backend.alive() else (self.backend, feed):
            if part is not None:
                try:
                    part.stop()
                except Exception:  # a dead JVM refuses to be stopped
                    _LOG.warning("stopping %s", type(part).__name__, exc_info=True)
        if owner is not None and not owner.stop(within_s):
            raise RuntimeError("the pump has not ended, and may still write")
        self._feed = self._owner = None

    # --- the evaluator is started again

    def _broken(self, life: int, failure: BaseException) -> None:
        """Something that the pump cannot do without has failed. What is on disk is whole: it is taken up anew."""
        with self._changed:
            if life != self._life or self._closing.is_set() or self.state not in ("starting", "running", "restarting"):
                return
            before, self._failure = self.state, failure
            if before != "starting":
                self._life += 1
                self.state = "restarting"
            self._changed.notify_all()
        if before == "starting":
            self._fail(failure)
        elif before == "running":
            self._starter = Worker("restart", partial(self._restart, failure), self._fail, most=0)
            self._starter.start()

    def _restart(self, failure: BaseException) -> None:
        """Bring the evaluator up again, with patience; the input log is written meanwhile."""
        self._tell_queries("running", "restarting", "the evaluator has failed")
        while (wait_s := self._patience.failed(self._position)) is not None:
            _LOG.error("the evaluator is started again after %g s: %s", wait_s, failure, exc_info=failure)
            try:
                self._become("restarting", f"starting again after: {failure}")
                self._end_life(_END_S)
                if self._closing.wait(wait_s):
                    return
                life = self._life
                for _ in self.folder.recover(self.results.position):    # what is no longer there is recorded as lost
                    self._say("checking the input log")
                self._bring_up(life)
                with self._changed:
                    if self._life != life:
                        raise self._failure or EvaluatorDownError("the evaluator has failed again")
                    self.state = "running"
            except Exception as again:  # any of Spark's, or of what is restored
                if self._closing.is_set():
                    self.backend.stop()
                    return
                with self._changed:
                    self._life += 1     # no more is heard of this one
                failure = again
                continue
            self._patience.began()
            self._become("running", "ready")
            self._tell_queries("restarting", "running", "the evaluator was started again")
            return
        self._fail(failure)

    def _tell_queries(self, before: str, state: str, reason: str) -> None:
        for query in self.snapshot.queries.values():
            if query.state == "running":
                self.notify(Notice("status", query.name, data={"state": state, "previous": before, "reason": reason}))

    def _sight(self) -> Sight:
        owner = self._owner
        idle = owner is None or not owner.worker.busy_s
        return Sight(self.state == "running", self._life, self._position, self.backlog, idle)

    def _fail(self, failure: BaseException) -> None:
        """The engine cannot go on; what is on disk is whole, a new start takes it up."""
        if self._closing.is_set() or self.state == "failed":
            return
        _LOG.error("the engine failed: %s", failure)
        self._become("failed", f"{type(failure).__name__}: {failure}")
        with self._changed:
            self._changed.notify_all()

    def _become(self, state: str, progress: str) -> None:
        self.state, self.progress = state, progress
        self.notify(Notice("engine", data={"state": state, "progress": progress}))

    def _say(self, progress: str) -> None:
        if self._closing.is_set():
            raise unavailable("shutting-down", "The engine was stopped while it started.")
        self.progress = progress
        self.notify(Notice("engine", data={"state": self.state, "progress": progress}))

    # --- batches

    @property
    def view(self) -> View:
        """What there is now, once the engine runs; 503 before."""
        self.check_running()
        return View(self.writer.appender.catalogue, self.snapshot, self.writer.appender.sources)

    def check_evaluating(self) -> None:
        """Raise 503 unless something can be evaluated now."""
        self.check_running()
        if self.state == "restarting":
            raise unavailable("engine-restarting", f"Spark is started again: {self.progress}.", 5)

    def check_running(self) -> None:
        """Raise 503 unless the engine runs: its log is written and can be read, also while the evaluator is started again."""
        if self.state == "starting":
            raise unavailable("engine-starting", f"The engine is starting: {self.progress}.")
        if self.state == "stopping":
            raise unavailable("shutting-down", "The engine is stopping.")
        if self.state == "failed":
            raise EngineError("engine-failed", 503, f"The engine has failed: {self.progress}")

    def _batch(self, life: int, read: Callable[[], pa.Table]) -> None:
        """The feed has rows. They are not asked for where the pump has had them, or is so far behind that it had better read ahead; the
        feed is come back to when it is not, for to ask it takes time too, and what it brings then has mostly been read."""
        owner, pump = self._owner, self._pump
        waiting = self.folder.waiting(self._position)
        if not waiting or life != self._life:
            return
        assert owner is not None and pump is not None
        table = ROWS.empty_table() if self._ahead or _many(waiting) else self._read(read)
        self._ahead = False
        owner.call(lambda: self._process(pump, table))
        while life == self._life and self.state != "failed" and not self._closing.is_set():
            if self._position >= waiting[-1].last and not _many(waiting := self.folder.waiting(self._position)):
                return
            self._ahead = True
            owner.call(lambda: self._process(pump, ROWS.empty_table()))

    def _wait_for_room(self, life: int, failure: Exception) -> None:
        """The pump cannot write what it did: try again a little later. Raises where the engine is stopped."""
        if self._without_room is None:
            _LOG.error("the pump waits for room on the disk: %s", failure)
            self._without_room = str(failure)
            self._say(f"waiting for room on the disk: {failure}")
        if self._closing.wait(self.settings.room_poll_s) or life != self._life:
            raise unavailable("shutting-down", "The pump is stopped.")

    def _read(self, read: Callable[[], pa.Table]) -> pa.Table:
        """What the feed has. Where it cannot read a file that it has listed, the files are read here, and a damaged one is found."""
        try:
            return read()
        except Exception:  # Spark's and Py4J's errors have no common base
            if not self.backend.alive():
                raise
            _LOG.warning("the feed could not read its files; they are read without it", exc_info=True)
            return ROWS.empty_table()

    def _process(self, pump: Pump, table: pa.Table) -> None:
        """Run the pump. Files that the feed left out, and those written since it looked, are read here: it will bring them later, and
        the pump leaves them out then."""
        ends = pc.min_max(table["position"]).as_py()
        first, last = ends["min"] or 0, ends["max"] or 0
        if first > pump.position + 1:
            for missing in self.folder.read(pump.position, first - 1):
                self._process_rows(pump, missing)
        newer = self.folder.some(max(last, pump.position), _MOST_NEWER_ROWS)
        self._process_rows(pump, pa.concat_tables([table.cast(ROWS), *newer]))

    def _process_rows(self, pump: Pump, table: pa.Table) -> None:
        for part in pump.parts(table):
            self._process_part(pump, part)

    def _process_part(self, pump: Pump, table: pa.Table) -> None:
        outcome = pump.process(table)
        if not outcome.rows:
            return
        if self._without_room is not None:
            _LOG.warning("there is room on the disk again")
            self._without_room = None
            self._say("ready")
        self._meters.batch(outcome, self.clock.now_ms())
        self.snapshot = snapshot_of(pump, self._meters.measured())
        self.timer.expect(pump.next_ticks())
        with self._changed:
            self._position = pump.position
            self._changed.notify_all()
        for event in outcome.results:
            self.notify(Notice("result", event.query, event))
        for notice in outcome.notices:
            self.notify(notice)
        if self.writer.appender.catalogue.waits_for(position := pump.position):
            self.writer.submit(lambda end, now: end.reached(position))
        self._tell_progress()
        self.keeper.wake()

    def _decide(self, name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
        """Log that an evaluation failed by a limit; called in the owner's thread."""
        _LOG.warning("the query %r fails at %d: %s", name, tick, error)
        payload = verdict_payload(Verdict(0, name, epoch, tick, error.limit, error.detail))
        return self.writer.call(lambda end, now: end.command(Kind.VERDICT, name, payload))

    def _later(self, position: int) -> list[Control]:
        """The records of the log beyond a position that are not items."""
        return [control for table in self.folder.read(position) for control in controls(table)]

    def _stands(self, epoch: str) -> bool:
        """Whether a generation of a query is neither removed nor replaced by what is in the log."""
        return self.writer.appender.catalogue.stands(epoch)

    def end_removed(self) -> None:
        """End the evaluations of queries that are removed or replaced by what is in the log."""
        if self._pump is not None:
            self._pump.end_removed()

    def _pause_all(self, pump: Pump) -> None:
        """Pause all queries from where the pump stands, so that nothing is evaluated until they are let go on, one by one."""
        def pause(end: Appender, now: int) -> tuple[list[pa.Table], None]:
            running = [query.name for query in end.catalogue.queries.values() if query.wish == "running"]
            return [end.change(Kind.PAUSE, name, {START: pump.position}) for name in running], None

        self.writer.call(pause)
        pump.ahead.note(self._later(pump.position))

    def _tell_progress(self) -> None:
        now, end = self.clock.now_ms(), self.writer.appender
        view = View(end.catalogue, self.snapshot, end.sources)
        for query in view.catalogue.queries.values():
            if view.seen(query) is not None and (news := self._meters.news(query.name, view.reached(query), now)) is not None:
                self.notify(Notice("progress", query.name, data={**progress(query, view, now), **news}))

    def _recompile(self, text: str, name: str, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet]) -> Compiled:
        """Compile a text that was accepted when it was registered: the limits of then do not matter now."""
        statement = self._parse(text)
        streams = {source.stream: "event" for source in statement.streams}
        catalog = Catalog(streams, graphs, rules, max_range_ms=1 << 60, max_steps=1 << 60, max_items=1 << 60, mixed_time=True)
        return self.backend.compile(statement, name, catalog)

    def wait_for(self, position: int, timeout_s: float | None, life: int | None = None) -> bool:
        """Wait until the pump has processed `position`; False if it did not in time or the engine stopped. With `life` it raises where
        the evaluator fails before that."""
        def ended() -> bool:
            return self._position >= position or self.state in ("failed", "stopping") or life not in (None, self._life)
        with self._changed:
            self._changed.wait_for(ended, timeout_s)
        if self._position < position and life not in (None, self._life):
            raise self._failure or EvaluatorDownError("the evaluator has failed")
        if self.state == "failed" and self._position < position and timeout_s is None:
            raise RuntimeError(self.progress)
        return self._position >= position

    @property
    def backlog(self) -> int:
        """Records of the log that the pump has not processed."""
        return self.writer.appender.position - 1 - self._position

    def _arrival_streams(self) -> list[str]:
        """Streams that some query reads: their clocks move on together."""
        return sorted({stream for query in self.writer.appender.catalogue.queries.values() for stream in query.streams})

    def _needed(self) -> tuple[int, int] | None:
        """The longest retention of a stream, and the time from which on items may be read again; None while that is not known."""
        if self.state != "running":
            return None
        longest = max((source.retention_ms for source in self.writer.appender.sources.values()), default=0)
        return longest, self.snapshot.oldest_needed

    def _seen(self, files: int) -> None:
        if self._feed is not None:
            self._feed.seen(files)

    # --- health

    @property
    def reserve(self) -> int | None:
        """Bytes of the disk below which nothing is taken in; None before the data folder is open."""
        return self.room.reserve if self._is_open else None

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the engine does its work, and what does not work beside it."""
        workers, reasons = self.workers, list[str]()
        if self._is_open:
            reasons = [*self._watch.reasons(workers), *([self._without_room] if self._without_room is not None else [])]
        return self.state == "running" and not reasons, {
            **({"reason": "; ".join(reasons)} if reasons else {}), "degraded": [trouble.to_json() for trouble in self._troubles()],
            "threads": {worker.name: worker.to_json() for worker in workers}}

    @property
    def workers(self) -> list[Worker]:
        """The threads of the engine."""
        if not self._is_open:
            return []
        parts = [part.worker for part in (self._owner, self._feed) if part is not None]
        parts += [self._starter] if self._starter is not None else []
        return [self.writer.worker, self.timer.worker, self.keeper.worker, self._watch.worker, *parts]

    def _troubles(self) -> Iterator[Trouble]:
        if not self._is_open:
            return
        yield from self.aside.troubles()
        if self.room.low:
            yield Trouble("disk", str(self.settings.data), f"{self.room.free()} bytes free; below {self.room.reserve} nothing is taken in")
        for hole in self.folder.holes:
            yield Trouble("log", f"records {hole.first} to {hole.last}", f"lost: {hole.reason}")
        if ahead := self.clock.ahead_ms:
            yield Trouble("clock", "server", f"the machine's clock was set back: it is {ahead} ms behind; time goes on from the last stamp")
        yield from self.snapshot.troubles

    # --- listeners

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every notice, from engine threads; the function returned ends it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
        return unsubscribe

    def notify(self, notice: Notice) -> None:
        """Tell every listener."""
        for listener in list(self._listeners):
            try:
                listener(notice)
            except Exception:  # a listener's fault must not stop the pump
                _LOG.exception("a listener failed")


def _lock(path: Path) -> TextIO:
    """The data folder for this process alone, for as long as the file is open."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise EngineError("data-in-use", 503, f"Another process uses the data folder {path.parent}.") from None
    return file


def _many(files: Sequence[LogFile]) -> bool:
    """Whether files are too many, or too large, to be read through Spark."""
    return len(files) > _FEW_FILES or sum(file.path.stat().st_size for file in files) > _FEW_BYTES
