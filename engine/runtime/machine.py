"""The running parts: data folder, input log, evaluator (evaluator.py), timer, watch; start, recovery, failure, stop, health. Start-up is in
two steps: what is quick (lock, database, end of the log) at once, Spark and the state of the queries in a thread."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from engine.ir.statement import Statement
from engine.runtime.append import Recovery
from engine.runtime.backend import Backend
from engine.runtime.batch import EvaluatorDownError
from engine.runtime.catalogue import Planned
from engine.runtime.clock import Clock
from engine.runtime.data_folder import Room, SetAside, Trouble, lock
from engine.runtime.errors import EngineError, plain, unavailable
from engine.runtime.evaluator import Evaluator
from engine.runtime.log import LogFolder
from engine.runtime.log_threads import LogKeeper, LogWriter, Timer
from engine.runtime.resources import Listeners, Notice
from engine.runtime.results import ResultLog, Retention
from engine.runtime.settings import Settings
from engine.runtime.stores import ParseRules
from engine.runtime.threads import Sight, Watch
from engine.runtime.topics import ReaderOf, Reading
from engine.runtime.view import Meters, Snapshot, View
from engine.supervision import Backoff, Heap, Worker

_LOG = logging.getLogger(__name__)
_END_S = 30.0     # so long the pump may take to end before the evaluator is started again


class Machine:
    """Everything behind `service.Engine`. `state`: ``starting``, ``running``, ``restarting`` (the evaluator is started again),
    ``stopping`` or ``failed``; `progress` says more. `position` is how far the pump is. `life` numbers the starts of the evaluator: what
    comes from one before the last is not heard. `deaths`: by query in how many evaluations it died (verdicts.py). `topic_sizes`: by stream
    how many records of its topic are read at once, where more were too many."""

    def __init__(self, settings: Settings, parse: Callable[[str], Statement], parse_rules: ParseRules, clock: Clock,
                 backend: Backend, reader_of: ReaderOf | None = None) -> None:
        """`reader_of` gives what reads the records of a topic; without it no topics are read."""
        self.settings, self.clock, self.backend = settings, clock, backend
        self.state, self.progress = "starting", "not started"
        self.snapshot = Snapshot()
        self.parse, self.parse_rules, self.reader_of = parse, parse_rules, reader_of
        self.listeners, self.meters, self.heap = Listeners(), Meters(), Heap()
        self.position = self.life = 0
        self.closing = threading.Event()
        self.planned = Planned()
        self._changed = threading.Condition()
        self._without_room: str | None = None
        self._opened = ExitStack()
        self._is_open = False
        self.deaths: dict[str, int] = {}
        self.topic_sizes: dict[str, int] = {}
        self._evaluator = Evaluator(self, self.life)
        self._failure: BaseException | None = None
        self._backoff = Backoff(settings.restarts_in_a_row, settings.restart_wait_s)
        self._starter: Worker | None = None     # the first start, or the last one since
        self._watch = Watch(settings, self._sight, backend.alive, backend.lacks, self.broken)

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
        self._opened.enter_context(lock(own.data / "lock"))
        self.aside, self.room = SetAside(own.data / "set-aside"), Room(own.data, own.reserve_bytes)
        self.results = ResultLog(own.database, Retention(own.result_count, own.result_age_ms, own.result_bytes), own.dead_letters,
                                 own.idempotency_keys)
        self._opened.callback(self.results.close)
        self.clock.not_before(self.results.meta("clock", 0))
        self.folder = LogFolder(own.log_folder, own.archive_folder, self.aside)
        self.position = self.results.position
        end = Recovery(self.parse, self.parse_rules).end(self.results, self.folder, self.clock.now_ms(), own)
        self.writer = LogWriter(self.folder, end, self.clock.now_ms, own.commit_interval_ms, self._arrival_streams,
                                lambda: self.position, self._fail, lambda commands: self._evaluator.written(commands))
        self.timer = Timer(self.clock, self.writer, self._fail)
        self.keeper = LogKeeper(self.folder, self.room, own.archive_files, lambda: self.position, self._needed, self._seen)
        self.writer.worker.start()
        for stop in (self._stop_parts, self.writer.stop, self._stop_topics, self.timer.stop):     # the last one is stopped first
            self._opened.callback(stop)
        self._is_open = True

    def _start_up(self) -> None:
        try:
            self._evaluator.start()
            self.writer.call(lambda end, now: end.stay_awake(now))
            self.timer.worker.start()
            self.keeper.worker.start()
            self._watch.worker.start()
            self._become("running", "ready")
        except Exception as failure:  # shown by /health/ready; nothing else can be done with it
            if self.closing.is_set():
                self.backend.stop()
                return
            _LOG.exception("the engine did not start")
            self._fail(failure)

    # --- stop

    def stop(self) -> None:
        """Finish what was begun, keep everything, stop Spark. Safe to call at any time, more than once."""
        if self.closing.is_set():
            return
        self.closing.set()
        if self.state != "failed":
            self._become("stopping", "stopping")
        self._opened.close()

    def _stop_topics(self) -> None:
        if (topics := self._evaluator.topics) is not None:
            topics.stop()

    def _stop_parts(self) -> None:
        self.keeper.stop()
        self._watch.stop()
        if self._starter is not None and self.life:
            self._starter.join(_END_S)
        self._evaluator.end(None)

    # --- the evaluator is started again

    def broken(self, life: int, failure: BaseException) -> None:
        """Something that the pump cannot do without has failed. What is on disk is whole: it is taken up anew."""
        with self._changed:
            if life != self.life or self.closing.is_set() or self.state not in ("starting", "running", "restarting"):
                return
            before, self._failure = self.state, failure
            if before != "starting":
                self.life += 1
                self.state = "restarting"
            self._changed.notify_all()
        if before == "starting":
            self._fail(failure)
        elif before == "running":
            self._starter = Worker("restart", partial(self._restart, failure), self._fail, most=0)
            self._starter.start()

    def _restart(self, failure: BaseException) -> None:
        """Bring the evaluator up again, after longer and longer waits; the input log is written meanwhile."""
        self._tell_queries("running", "restarting", "the evaluator has failed")
        while (wait_s := self._backoff.failed(self.position)) is not None:
            _LOG.error("the evaluator is started again after %g s: %s", wait_s, failure, exc_info=failure)
            try:
                self._become("restarting", f"starting again after: {plain(failure)}")
                self._evaluator.end(_END_S)
                if self.closing.wait(wait_s):
                    return
                life = self.life
                for _ in self.folder.recover(self.results.position):    # what is no longer there is recorded as lost
                    self.say("checking the input log")
                self._evaluator = Evaluator(self, life)
                self._evaluator.start()
                with self._changed:
                    if self.life != life:
                        raise self._failure or EvaluatorDownError("the evaluator has failed again")
                    self.state = "running"
            except Exception as again:  # any of Spark's, or of what is restored
                if self.closing.is_set():
                    self.backend.stop()
                    return
                with self._changed:
                    self.life += 1     # no more is heard of this one
                failure = again
                continue
            self._backoff.began()
            self._become("running", "ready")
            self._tell_queries("restarting", "running", "the evaluator was started again")
            return
        self._fail(failure)

    def _tell_queries(self, before: str, state: str, reason: str) -> None:
        for query in self.snapshot.queries.values():
            if query.state == "running":
                self.listeners.notify(Notice("status", query.name, data={"state": state, "previous": before, "reason": reason}))

    def _sight(self) -> Sight:
        owner = self._evaluator.owner
        idle = owner is None or not owner.worker.busy_s
        return Sight(self.state == "running", self.life, self.position, self.backlog, idle)

    def _fail(self, failure: BaseException) -> None:
        """The engine cannot go on; what is on disk is whole, a new start takes it up."""
        if self.closing.is_set() or self.state == "failed":
            return
        _LOG.error("the engine failed: %s", failure)
        self._become("failed", f"{type(failure).__name__}: {plain(failure)}")

    def _become(self, state: str, progress: str) -> None:
        self.state, self.progress = state, progress
        with self._changed:
            self._changed.notify_all()
        self.listeners.notify(Notice("engine", data={"state": state, "progress": progress}))

    def say(self, progress: str) -> None:
        """Tell what is being done; raise 503 where the engine is stopped meanwhile."""
        if self.closing.is_set():
            raise unavailable("shutting-down", "The engine was stopped while it started.")
        self.progress = progress
        self.listeners.notify(Notice("engine", data={"state": self.state, "progress": progress}))

    # --- what others see

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

    # --- the pump

    def reached(self, position: int, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        with self._changed:
            self.position = position
            self._changed.notify_all()

    def has_no_room(self, failure: Exception) -> None:
        if self._without_room is None:
            _LOG.error("the pump waits for room on the disk: %s", failure)
            self._without_room = str(failure)
            self.say(f"waiting for room on the disk: {failure}")

    def has_room(self) -> None:
        if self._without_room is not None:
            _LOG.warning("there is room on the disk again")
            self._without_room = None
            self.say("ready")

    def end_removed(self) -> None:
        if (pump := self._evaluator.pump) is not None:
            pump.end_removed()

    def wait_for(self, position: int, timeout_s: float | None, life: int | None = None) -> bool:
        """Wait until the pump has processed `position`; False if it did not in time or the engine stopped. With `life` it raises where
        the evaluator fails before that."""
        def ended() -> bool:
            return self.position >= position or self.state in ("failed", "stopping") or life not in (None, self.life)
        with self._changed:
            self._changed.wait_for(ended, timeout_s)
        if self.position < position and life not in (None, self.life):
            raise self._failure or EvaluatorDownError("the evaluator has failed")
        if self.state == "failed" and self.position < position and timeout_s is None:
            raise RuntimeError(self.progress)
        return self.position >= position

    def catch_up(self) -> None:
        self._evaluator.catch_up()

    @property
    def backlog(self) -> int:
        return self.writer.appender.position - 1 - self.position

    def reading(self, iri: str) -> Reading:
        """How the topic of a stream is read."""
        source, topics = self.writer.appender.sources.get(iri), self._evaluator.topics
        if source is not None and source.topic is not None and source.topic.servers not in self.settings.kafka:
            return Reading("waiting", error=f"the server was not started with --kafka {source.topic.servers}")
        return Reading() if topics is None else topics.reading(iri)

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
        if (feed := self._evaluator.feed) is not None:
            feed.seen(files)

    # --- health

    @property
    def reserve(self) -> int | None:
        """Bytes of the disk below which nothing is taken in; None before the data folder is open."""
        return self.room.reserve if self._is_open else None

    def health(self) -> tuple[bool, dict[str, Any]]:
        if not self._is_open:
            return False, {"degraded": [], "threads": {}}
        workers = self.workers
        reasons = self._watch.reasons(workers)
        if self._without_room is not None:
            reasons.append(self._without_room)
        return self.state == "running" and not reasons, {
            **({"reason": "; ".join(reasons)} if reasons else {}), "degraded": [asdict(trouble) for trouble in self._troubles()],
            "threads": {worker.name: worker.to_json() for worker in workers}}

    @property
    def workers(self) -> list[Worker]:
        parts = [part.worker for part in (self._evaluator.owner, self._evaluator.feed) if part is not None]
        parts += [self._starter] if self._starter is not None else []
        parts += self._evaluator.topics.keeper.workers if self._evaluator.topics is not None else []
        return [self.writer.worker, self.timer.worker, self.keeper.worker, self._watch.worker, *parts]

    def _troubles(self) -> Iterator[Trouble]:
        yield from self.aside.troubles()
        if self.room.low:
            yield Trouble("disk", str(self.settings.data), f"{self.room.free()} bytes free; below {self.room.reserve} nothing is taken in")
        for hole in self.folder.holes:
            yield Trouble("log", f"records {hole.first} to {hole.last}", f"lost: {hole.reason}")
        if ahead := self.clock.ahead_ms:
            yield Trouble("clock", "server", f"the machine's clock was set back: it is {ahead} ms behind; time goes on from the last stamp")
        for iri, source in list(self.writer.appender.sources.items()):
            if source.topic is not None and (reading := self.reading(iri)).state == "waiting":
                yield Trouble("topic", iri, reading.error or "")
        yield from self.snapshot.troubles
