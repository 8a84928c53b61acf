"""One start of the evaluator: the pump in its own thread, and the feed that brings it the log. What
fails here is told to the machine, which ends this and begins another."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engine.compiler import Catalog
from engine.execution.compiled import Compiled
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.limits import LimitExceeded
from engine.records import Verdict
from engine.runtime.append import Appender
from engine.runtime.batch import Limits
from engine.runtime.describe import progress
from engine.runtime.errors import EngineError, is_full, unavailable
from engine.runtime.log import LogFile
from engine.runtime.log_threads import DecideAtEnd
from engine.runtime.pump import Pump
from engine.runtime.resources import Notice
from engine.runtime.rows import ROWS, Control, Kind, controls, verdict_payload
from engine.runtime.threads import Lane, Owner
from engine.runtime.topic_feeds import TopicFeeds
from engine.runtime.verdicts import START, Suspects
from engine.runtime.view import View, snapshot_of

if TYPE_CHECKING:
    from engine.runtime.machine import Machine
    from engine.spark.feed import Feed

_LOG = logging.getLogger(__name__)
_WARM_UP_BATCHES = 6
_MOST_NEWER_ROWS = 400_000
_FEW_RECORDS, _FEW_WAITING = 15_000, 8     # so many records, in so many files, wait for more where nothing is due with them
_CATCH_UP_S = 0.5       # who asks for what the pump has waits no longer for what was held back
_FEW_FILES, _FEW_BYTES = 4, 500_000     # so much is read through Spark; more of it at once is read faster here


class Evaluator:
    """`life` is the number of the start; once the machine is at another, nothing is heard of this one. `owner`, `pump`, `feed` and `topics`
    are None until they are there."""

    def __init__(self, machine: Machine, life: int) -> None:
        self.life = life
        self.owner: Owner | None = None
        self.pump: Pump | None = None
        self.feed: Feed | None = None
        self.topics: TopicFeeds | None = None
        self._lane: Lane | None = None
        self._machine = machine
        self._ahead = False
        self._written = 0       # files since the last batch began
        self._soonest: Sequence[tuple[int, tuple[str, ...]]] = ()

    # --- start and end

    def start(self) -> None:
        machine, own = self._machine, self._machine.settings
        machine.say("starting Spark")
        executor = Suspects(machine.backend.start(machine.say, self._broken), machine.deaths, machine.backend.alive,
                            lambda: not machine.closing.is_set())
        if own.warm_up:
            machine.say("warming up")
            machine.backend.warm_up(machine.say)
        machine.say("restoring the state of the queries")
        limits = Limits(own.ticks_per_job, own.max_result_rows, tail=own.tail_items, tail_bytes=own.tail_bytes,
                        evaluation=own.evaluation, commit=own.commit_evaluations, patience_ms=own.batch_patience_ms, paths=own.paths)
        owner = self.owner = Owner(self._broken)
        beside = machine.backend.beside()
        lane = self._lane = None if beside is None else Lane(executor, executor.watched(beside.evaluate), self._decide, self._wake)
        pump = Pump(executor, machine.results, machine.parse, self._recompile, parse_rules=machine.parse_rules,
                    graph_folder=own.graph_folder, limits=limits, now=machine.clock.now_ms, alive=machine.backend.alive,
                    history=machine.folder.history, following=machine.folder.holes.after, aside=machine.aside, full=self._wait_for_room,
                    stands=lambda epoch: epoch in machine.writer.appender.catalogue.epochs, decide=self._decide, later=self._later,
                    lane=lane, planned=machine.planned.take)
        owner.call(pump.restore)
        if own.paused and self.life == 0:
            self._pause_all(pump)
        self.pump = pump
        machine.reached(pump.position, snapshot_of(pump, machine.meters.measured))
        self._begin_feed()
        shutil.rmtree(own.topics_folder, ignore_errors=True)
        if machine.reader_of is not None and own.kafka:
            self.topics = TopicFeeds(machine, machine.reader_of)
            self.topics.keeper.worker.start()

    def end(self, within_s: float | None) -> None:
        """End feed, backend and owner, in an order in which none waits for another that is dead. RuntimeError where the owner does not
        end in time: its pump may still write."""
        backend, feed, owner = self._machine.backend, self.feed, self.owner
        alive = backend.alive()
        if self._lane is not None:
            self._lane.close(cancel=alive)
        for part in (self.topics, feed, backend) if alive else (backend, self.topics, feed):
            if part is not None:
                try:
                    part.stop()
                except Exception:  # a dead JVM refuses to be stopped
                    _LOG.warning("stopping %s", type(part).__name__, exc_info=True)
        if owner is not None and not owner.stop(within_s):
            raise RuntimeError("the pump has not ended, and may still write")
        self.feed = self.owner = self.topics = None
        self._machine.heap.thaw()

    def _broken(self, failure: BaseException) -> None:
        self._machine.broken(self.life, failure)

    @property
    def _over(self) -> bool:
        return self.life != self._machine.life

    def _begin_feed(self) -> None:
        """Start the feed, catch up with the log, and send a few empty records through: the first batches are slow."""
        machine = self._machine
        machine.keeper.merge(1)
        checkpoints = machine.settings.checkpoint_folder
        shutil.rmtree(checkpoints, ignore_errors=True)
        if checkpoints.exists():    # they must not hinder the new feed
            machine.aside.move(checkpoints, "old checkpoints that cannot be removed")
        self.feed = machine.backend.feed(self._batch, self._broken)
        self.feed.start()
        end = max((file.last for file in machine.folder.waiting(machine.position)), default=0)
        if end > machine.position:
            machine.say(f"catching up with the input log: {end - machine.position} records")
            machine.wait_for(end, None, self.life)
        for number in range(_WARM_UP_BATCHES if machine.settings.warm_up else 1):
            machine.say(f"warming up the pump, batch {number + 1}")
            machine.wait_for(self._append(lambda end, now: end.command(Kind.NOTE, "", {"started": now})), None, self.life)

    def _append(self, decide: DecideAtEnd[int]) -> int:
        """Append a record that is not needed where there is no room for it; its position, or 0."""
        try:
            return self._machine.writer.call(decide)
        except EngineError as full:
            if not is_full(full):
                raise
            _LOG.warning("%s", full)
            return 0

    # --- batches

    def written(self, commands: bool) -> None:
        """There is another file of the log. Each batch costs some milliseconds whatever it holds: so the pump is woken where there are
        `commands` among the records, something may be due with them, or they are many; else the feed looks by itself after a while."""
        self._written += 1
        if commands or self._is_wanted():
            self.hurry()

    def hurry(self) -> None:
        if (feed := self.feed) is not None:
            feed.wake()

    def catch_up(self) -> None:
        """Let the pump take in what was held back, and wait for that."""
        machine = self._machine
        if 0 < machine.backlog <= _FEW_RECORDS:
            self.hurry()
            machine.wait_for(machine.writer.appender.position - 1, _CATCH_UP_S)

    def _is_wanted(self) -> bool:
        machine, sources = self._machine, self._machine.writer.appender.sources
        return self._written > _FEW_WAITING or machine.backlog > _FEW_RECORDS or any(
            all(iri not in sources or sources[iri].idle or sources[iri].watermark >= tick for iri in streams)
            for tick, streams in self._soonest)

    def _batch(self, read: Callable[[], pa.Table] | None) -> None:
        """The feed has rows, or (None) the log has. They are not read from the feed where the pump has had them, or is so far behind that
        the log itself is read faster. Then the log is read until the pump has caught up."""
        machine, owner, pump = self._machine, self.owner, self.pump
        waiting = machine.folder.waiting(machine.position)
        if not waiting or self._over:
            return
        assert owner is not None and pump is not None
        table = ROWS.empty_table() if read is None or self._ahead or _many(waiting) else self._read(read)
        self._ahead = read is None
        self._written = 0
        owner.call(lambda: self._process(pump, table))
        while not self._over and machine.state != "failed" and not machine.closing.is_set():
            if machine.position >= waiting[-1].last and not _many(waiting := machine.folder.waiting(machine.position)):
                break
            self._ahead = True
            owner.call(lambda: self._process(pump, ROWS.empty_table()))

    def _read(self, read: Callable[[], pa.Table]) -> pa.Table:
        """What the feed has. Where it cannot read a file that it has listed, the files are read here, and a damaged one is found."""
        try:
            return read()
        except Exception:  # Spark's and Py4J's errors have no common base
            if not self._machine.backend.alive():
                raise
            _LOG.warning("the feed could not read its files; they are read without it", exc_info=True)
            return ROWS.empty_table()

    def _process(self, pump: Pump, table: pa.Table) -> None:
        """Run the pump, over files that the feed left out or that came since it looked, too."""
        folder = self._machine.folder
        ends = pc.min_max(table["position"]).as_py()
        first, last = ends["min"] or 0, ends["max"] or 0
        if first > pump.position + 1:
            for missing in folder.read(pump.position, first - 1):
                self._process_rows(pump, missing)
        newer = folder.some(max(last, pump.position), _MOST_NEWER_ROWS)
        self._process_rows(pump, pa.concat_tables([table.cast(ROWS), *newer]))

    def _process_rows(self, pump: Pump, table: pa.Table) -> None:
        for part in pump.parts(table):
            self._process_part(pump, part)

    def _process_part(self, pump: Pump, table: pa.Table) -> None:
        machine = self._machine
        outcome = pump.process(table)
        if not outcome.committed:
            return
        machine.has_room()
        machine.meters.batch(outcome, machine.clock.now_ms())
        machine.timer.expect(pump.next_ticks())
        self._soonest = pump.soonest_ticks()
        machine.reached(position := pump.position, snapshot_of(pump, machine.meters.measured))
        if machine.backlog and self._is_wanted():     # of what was written before it was known what is due next
            self.hurry()
        for event in outcome.results:
            machine.listeners.notify(Notice("result", event.query, event))
        for notice in outcome.notices:
            machine.listeners.notify(notice)
        if machine.writer.appender.catalogue.waits_for <= position:
            machine.writer.submit(lambda end, now: end.reached(position))
        self._tell_progress()
        pump.results.retain(machine.clock.now_ms())
        if not outcome.ticks:
            pump.bring_ahead()
            machine.heap.settle(pump.plans, len(pump.queries))
        machine.keeper.wake()

    def _wake(self) -> None:
        """The lane beside the pump has found something."""
        if (owner := self.owner) is not None:
            owner.submit(self._take_back)

    def _take_back(self) -> None:
        if self._over or self.pump is None:
            return
        try:
            self._process_part(self.pump, ROWS.empty_table())
        except BaseException as failure:  # nobody waits for this command
            self._broken(failure)

    def _tell_progress(self) -> None:
        machine = self._machine
        now, end = machine.clock.now_ms(), machine.writer.appender
        view = View(end.catalogue, machine.snapshot, end.sources)
        for query in view.catalogue.queries.values():
            if view.seen(query) is not None and (news := machine.meters.news(query.name, view.reached(query), now)) is not None:
                machine.listeners.notify(Notice("progress", query.name, data={**progress(query, view, now), **news}))

    # --- what the pump asks for

    def _wait_for_room(self, failure: Exception) -> None:
        """The pump cannot write what it did: try again a little later. Raises where the engine is stopped."""
        machine = self._machine
        machine.has_no_room(failure)
        if machine.closing.wait(machine.settings.room_poll_s) or self._over:
            raise unavailable("shutting-down", "The pump is stopped.")

    def _decide(self, name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
        """Log that an evaluation failed by a limit; called in the owner's thread and in those of the lane."""
        _LOG.warning("the query %r fails at %d: %s", name, tick, error)
        payload = verdict_payload(Verdict(0, name, epoch, tick, error.limit, error.detail))
        return self._machine.writer.call(lambda end, now: end.command(Kind.VERDICT, name, payload))

    def _later(self, position: int) -> list[Control]:
        return [control for table in self._machine.folder.read(position) for control in controls(table)]

    def _recompile(self, statement: Statement, name: str, graphs: Mapping[str, pa.Table], rules: Mapping[str, RuleSet]) -> Compiled:
        """Compile a statement that was accepted when it was registered: the limits of then do not matter now."""
        streams = {source.stream: "event" for source in statement.streams}
        catalog = Catalog(streams, graphs, rules, max_range_ms=1 << 60, max_steps=1 << 60, max_items=1 << 60, mixed_time=True)
        return self._machine.backend.compile(statement, name, catalog)

    def _pause_all(self, pump: Pump) -> None:
        """Pause all queries from where the pump stands, so that nothing is evaluated until they are let go on, one by one."""
        def pause(end: Appender, now: int) -> tuple[list[pa.Table], None]:
            running = [query.name for query in end.catalogue.queries.values() if query.wish == "running"]
            return [rows for name in running for rows in end.change(Kind.PAUSE, name, {START: pump.position})], None

        self._machine.writer.call(pause)
        pump.ahead.note(self._later(pump.position))


def _many(files: Sequence[LogFile]) -> bool:
    """Whether files are too many, or too large, to be read through Spark."""
    return len(files) > _FEW_FILES or sum(file.path.stat().st_size for file in files) > _FEW_BYTES
