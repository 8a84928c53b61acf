"""Slow queries are evaluated beside the pump: the others go on, and the results are those of a pump that waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st

from engine.execution.due import Answer, Due
from engine.ir.patterns import TriplePattern
from engine.ir.statement import Construct, GraphSource, RuleSource, Statement
from engine.ir.terms import Constant
from engine.limits import EvaluationLimits, LimitExceeded
from engine.records import End, GraphVersion, Pause, Record, Register, Resume, RulesVersion, Unregister
from engine.runtime.batch import EvaluatorDownError, Limits
from engine.runtime.pump import Pump
from engine.runtime.query import LiveQuery
from engine.runtime.results import ResultLog
from engine.runtime.rows import ROWS, Kind
from engine.runtime.threads import Lane, Task
from engine.runtime.verdicts import Suspects
from tests.encoded import encode
from tests.unit.runtime.lanes import Beside, HeldLane, ImpatientExecutor
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item
from tests.unit.runtime.test_pump import OBJECT, PATTERN, A, S, items, logs, make_pump, parse_rules, shown
from tests.unit.runtime.test_verdicts import HEAD, QUICK, SLOW, STATEMENT, Log, events, logged
from tests.waiting import wait_until

GRAPH = "http://ex.org/g"
GRAPHED = replace(STATEMENT, graphs=(GraphSource(GRAPH),))
RULED = replace(STATEMENT, rules=(RuleSource("r"),))
MAKER = replace(STATEMENT, query=Construct((TriplePattern(S, Constant("<p>"), OBJECT),), PATTERN), kind="stream", name="http://ex.org/m")
TEXTS = {"text": STATEMENT, "graphed": GRAPHED, "ruled": RULED, "maker": MAKER}


class WithLane:
    """A pump with a lane over a log, and the log read by one without."""

    def __init__(self, records: Sequence[Record], results: ResultLog | None = None, **slow: int) -> None:
        self.log, self.results = Log(records), results or ResultLog(None)
        self.executor = ImpatientExecutor(**(slow or {SLOW: 0}))
        self.pump = self.another(self.results)

    def another(self, results: ResultLog, lane: bool = True, beside: Beside | None = None) -> Pump:
        """A pump that goes on where `results` end."""
        self.lane = HeldLane(self.executor, beside, self.log.decide)
        pump = Pump(self.executor if lane else ReferenceExecutor(), results, TEXTS.__getitem__,
                    lambda statement, name, graphs, rules: ReferenceCompiled(statement, "", rules), parse_rules=parse_rules,
                    history=lambda needed, position: [items(self.log.table, position)], decide=self.log.decide, later=self.log.following,
                    stands=lambda epoch: epoch not in self.log.removed, limits=Limits(evaluation=EvaluationLimits()),
                    lane=self.lane if lane else None)
        pump.restore()
        return pump

    def process(self, until: int | None = None) -> None:
        self.log.process(self.pump, until or self.log.last)

    def harvest(self) -> None:
        """The lane has found what it evaluates."""
        self.lane.let_go()
        self.pump.process(ROWS.empty_table())

    def finish(self) -> None:
        while self.lane._tasks:
            self.harvest()

    def ticks(self, name: str) -> list[int]:
        return [event.tick for event in self.results.read(name, 0)]

    @property
    def replayed(self) -> list[tuple[object, ...]]:
        """What a pump finds that waits for all queries."""
        results = ResultLog(None)
        self.log.process(self.another(results, lane=False), self.log.last)
        return logged(results)


def test_the_neighbours_of_a_slow_query_go_on_and_its_results_come_later_in_order() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35, 45])])
    for position in range(3, 7):
        slowed.process(position)
    assert (slowed.ticks("quick"), slowed.ticks("slow")) == ([10, 20, 30], [])
    assert slowed.lane.begun == [(SLOW, 10)]
    assert slowed.pump.queries["slow"].reached < 10 <= slowed.pump.queries["quick"].reached
    slowed.harvest()
    assert slowed.ticks("slow") == [10]
    assert slowed.lane.begun == [(SLOW, 10), (SLOW, 20)], "what was due meanwhile follows"
    slowed.process()
    assert (slowed.ticks("quick"), slowed.ticks("slow")) == ([10, 20, 30, 40], [10])
    slowed.finish()
    assert slowed.ticks("slow") == [10, 20, 30, 40]
    assert logged(slowed.results) == slowed.replayed


def test_results_of_the_lane_are_of_the_position_that_the_pump_had_reached() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25])])
    slowed.process(4)
    slowed.process(5)
    slowed.lane.let_go()
    slowed.log.append(events(6, [35]))
    slowed.process()
    assert slowed.results.positions("slow", 1, 9) == {1: 5}


def test_a_query_that_is_quick_in_the_lane_goes_back_to_the_batch() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25])])
    slowed.pump = slowed.another(slowed.results, beside=Beside(slowed.executor, ms=999))
    slowed.process(4)
    slowed.executor.slow.clear()
    slowed.harvest()
    slowed.process()
    assert slowed.ticks("slow") == [10, 20]
    assert slowed.lane.begun == [(SLOW, 10)]


def test_a_query_that_is_for_the_lane_stays_there_however_quick_it_is() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25])])
    slowed.executor.keeps = True
    slowed.pump = slowed.another(slowed.results, beside=Beside(slowed.executor, ms=1))
    slowed.process(4)
    slowed.executor.slow.clear()
    slowed.harvest()
    slowed.process()
    assert slowed.ticks("slow") == [10]
    assert slowed.lane.begun == [(SLOW, 10), (SLOW, 20)]
    slowed.finish()
    assert logged(slowed.results) == slowed.replayed


def test_what_was_answered_in_time_is_logged_and_the_rest_goes_to_the_lane() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35])], **{SLOW: 2})
    slowed.process()
    assert slowed.ticks("slow") == [10, 20]
    assert slowed.lane.begun == [(SLOW, 30)]
    slowed.finish()
    assert logged(slowed.results) == slowed.replayed


@pytest.mark.parametrize("harvested", [0, 1])
def test_a_crash_while_something_is_in_the_lane_loses_nothing(harvested: int, tmp_path: Path) -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35])], ResultLog(tmp_path / "db"))
    for position in range(3, 7):
        slowed.process(position)
    for _ in range(harvested):
        slowed.harvest()
    slowed.results.close()
    slowed.results = ResultLog(tmp_path / "db")
    slowed.pump = slowed.another(slowed.results)
    slowed.log.append(events(7, [45]))
    slowed.process()
    slowed.finish()
    assert slowed.ticks("slow") == [10, 20, 30, 40]
    assert logged(slowed.results) == slowed.replayed
    slowed.results.close()


CHANGES: dict[str, tuple[str, list[Record]]] = {
    "graph": ("graphed", [GraphVersion(5, GRAPH, (("<g>", "<p>", '"1"'),))]),
    "rules": ("ruled", [RulesVersion(5, "r", "text/x-rules", "2 if 1")]),
    "pause": ("text", [Pause(5, "slow")]), "end": ("text", [End(5)])}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_a_query_waits_for_the_lane(name: str) -> None:
    text, change = CHANGES[name]
    head: list[Record] = [GraphVersion(1, GRAPH, (("<x>", "<p>", '"0"'),)), RulesVersion(2, "r", "text/x-rules", "9 if 2")]
    head += [Register(3, "quick", "text", 3), Register(4, "slow", text, 4)]
    more = [replace(record, position=9) for record in change]  # type: ignore[type-var]
    slowed = WithLane([*head, *events(5, [5, 15, 25, 35]), *more])
    for position in range(4, 9):
        slowed.process(position)
    assert slowed.ticks("slow") == [] and not slowed.lane.waited
    slowed.process(9)
    assert slowed.lane.waited[0] == SLOW
    assert slowed.ticks("slow")[:3] == [10, 20, 30]
    if name != "end":
        slowed.log.append(events(10, [45, 55]))
        slowed.process()
    slowed.finish()
    assert logged(slowed.results) == slowed.replayed


def test_a_change_that_does_not_concern_a_query_does_not_wait() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25]), GraphVersion(6, GRAPH, ()), Pause(7, "quick"), Resume(8, "quick", False),
                       Register(9, "third", "text", 9), *events(10, [35])])
    for position in range(3, 11):
        slowed.process(position)
    assert not slowed.lane.waited
    slowed.finish()
    assert logged(slowed.results) == slowed.replayed


@pytest.mark.parametrize("change", [Unregister(6, "slow"), Register(6, "slow", "text", 6)])
def test_what_is_removed_or_replaced_is_given_up_in_the_lane(change: Record) -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25]), change, *events(7, [35, 45])])
    slowed.process(4)
    [task] = slowed.lane._tasks.values()
    slowed.process(6)
    assert task.given_up and slowed.executor.cancelled == {SLOW} and not slowed.lane.waited
    slowed.lane._work(task)
    slowed.process()
    slowed.finish()
    assert "slow" not in slowed.pump.queries or slowed.pump.queries["slow"].state == "running"
    assert logged(slowed.results) == slowed.replayed


def test_a_lane_that_is_closed_takes_nothing_along(tmp_path: Path) -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35])], ResultLog(tmp_path / "db"))
    slowed.process(5)
    slowed.lane.close(cancel=False)
    slowed.process()
    slowed.executor.slow.clear()
    slowed.pump = slowed.another(slowed.results)
    slowed.log.append(events(7, [45]))
    slowed.process()
    assert slowed.ticks("slow") == [10, 20, 30, 40]
    assert logged(slowed.results) == slowed.replayed
    slowed.results.close()


def test_an_evaluation_in_the_lane_that_goes_over_a_limit_fails_its_query_by_a_verdict() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35])])
    slowed.executor.over[SLOW] = 20
    for position in range(3, 7):
        slowed.process(position)
    slowed.finish()
    assert (slowed.ticks("quick"), slowed.ticks("slow")) == ([10, 20, 30], [10])
    assert (slowed.pump.queries["quick"].state, slowed.pump.queries["slow"].state) == ("running", "failed")
    [verdict] = slowed.log.following(6)
    assert (verdict.kind, verdict.payload["epoch"], verdict.payload["tick"]) == (Kind.VERDICT, SLOW, 20)
    slowed.log.append([Resume(8, "slow", False), *events(9, [45, 55])])
    slowed.executor.over.clear()
    slowed.process()
    slowed.finish()
    assert logged(slowed.results) == slowed.replayed


def test_a_verdict_is_not_forgotten_before_a_query_that_is_behind_comes_to_it() -> None:
    first = WithLane([*HEAD, *events(3, [5, 15, 25, 35])])
    first.executor.over[SLOW] = 30
    first.process()
    first.finish()
    first.log.append(events(8, [45, 55]))
    again = WithLane([])
    again.log = first.log
    again.pump = again.another(again.results)
    for position in range(1, again.log.last + 1):
        again.process(position)
    again.finish()
    assert again.ticks("slow") == [10, 20]
    assert again.pump.queries["slow"].state == "failed"
    assert len(again.log.following(7)) == 0, "a verdict that is known is not logged again"


def test_the_end_of_the_evaluator_is_no_failure_of_a_query_in_the_lane() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15])])
    slowed.process()
    slowed.executor.failing.add(SLOW)
    slowed.pump._alive = lambda: False
    with pytest.raises(EvaluatorDownError):
        slowed.harvest()
    with pytest.raises(EvaluatorDownError, match="the pump has failed"):
        slowed.log.append(events(5, [25]))
        slowed.process()
    assert slowed.results.position == 4 and not slowed.ticks("slow")


def test_queries_that_make_a_stream_and_those_that_are_alone_are_waited_for() -> None:
    slowed = WithLane([Register(1, "quick", "text", 1), Register(2, "slow", "maker", 2), *events(3, [5, 15])])
    slowed.process()
    assert slowed.executor.hurried == {QUICK} and slowed.ticks("slow") == [10]
    alone = WithLane([Register(1, "slow", "text", 1), *events(2, [5, 15])], q1c1=0)
    alone.process()
    assert alone.executor.hurried == set() and alone.ticks("slow") == [10]


def test_what_a_query_in_the_lane_has_not_seen_is_kept_and_bounded() -> None:
    slowed = WithLane([*HEAD, *events(3, [5, 15, 25, 35, 45])])
    for position in range(3, 7):
        slowed.process(position)
    assert [chunk.oldest for chunk in slowed.pump.kept.contents[A].chunks][0] == 5
    slowed.pump._limits = replace(slowed.pump._limits, evaluation=EvaluationLimits(state_rows=3))
    slowed.process()
    assert slowed.lane.waited == [SLOW] and slowed.ticks("slow") == [10, 20, 30, 40]
    assert [chunk.oldest for chunk in slowed.pump.kept.contents[A].chunks] == [35, 45]


@given(logs(), st.data())
def test_any_log_gives_the_same_with_a_lane_however_late_it_is(log: tuple[list[Record], dict[str, Statement]], data: st.DataObject) -> None:
    records, texts = log
    epochs = [f"{name}c{number}" for name in ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8") for number in (1, 2, 3)]
    executor = ImpatientExecutor(**{epoch: data.draw(st.integers(0, 2)) for epoch in epochs})
    lane = HeldLane(executor, Beside(executor, data.draw(st.sampled_from([10, 60_000]))))
    results, whole = ResultLog(None), ResultLog(None)
    pump = make_pump(results, texts)
    with_lane = Pump(executor, results, texts.__getitem__, pump._compile, parse_rules=parse_rules, lane=lane,
                     history=lambda needed, position: [items(table, position)])
    table = encode(records)
    for position in range(1, len(records) + 1):
        with_lane.process(table.filter(pc.equal(table["position"], position)))
        if data.draw(st.booleans()):
            lane.let_go()
    while lane._tasks:
        lane.let_go()
        with_lane.process(ROWS.empty_table())
    make_pump(whole, texts).process(table)
    for name in ("q0", "q1", "q2"):
        assert [shown(event) for event in results.read(name, 0)] == [shown(event) for event in whole.read(name, 0)]


# --- the lane itself, and the engine with one


class Gate:
    """Evaluates beside the pump when it is opened."""

    def __init__(self, executor: Callable[[], ReferenceExecutor]) -> None:
        self.opened, self.asked = threading.Event(), list[str]()
        self._executor = executor

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        self.asked.append(due.query)
        while not self.opened.wait(0.01):
            if given_up():
                break
        return self._executor().evaluate([due]), 60_000


def task(epoch: str) -> Task:
    due: Any = Due(epoch, ReferenceCompiled(STATEMENT), (10,), -1, {}, {})  # type: ignore[arg-type]
    return Task("a", due, 10)


def test_the_lane_forgets_a_query_when_its_evaluation_has_ended() -> None:
    executor = ImpatientExecutor()
    forgotten: list[str] = []
    executor.forget = forgotten.append  # type: ignore[method-assign]
    woken = threading.Event()
    gate = Gate(lambda: executor)
    lane = Lane(executor, gate.evaluate, lambda *given: 0, woken.set)
    lane.begin(task("a"))
    lane.begin(task("b"))
    lane.forget("a")
    lane.forget("c")
    assert "a" not in lane and "b" in lane and "a" in executor.cancelled
    wait_until(lambda: sorted(forgotten) == ["a", "c"])
    gate.opened.set()
    wait_until(lambda: lane.has_ended)
    assert woken.wait(10)
    assert [ended.due.query for ended in lane.take_ended()] == ["b"] and not lane.has_ended


def test_who_waits_for_a_lane_that_is_closed_is_let_go() -> None:
    lane = Lane(ImpatientExecutor(), Gate(ImpatientExecutor).evaluate, lambda *given: 0, lambda: None)
    lane.begin(task("a"))
    closer = threading.Timer(0.05, lane.close, (True,))
    closer.start()
    with pytest.raises(EvaluatorDownError):
        lane.wait("a")
    with pytest.raises(EvaluatorDownError):
        lane.begin(task("b"))
    closer.join()


def test_what_is_begun_while_a_lane_is_closed_is_given_up_or_refused() -> None:
    lane = Lane(ImpatientExecutor(), Gate(ImpatientExecutor).evaluate, lambda *given: 0, lambda: None)
    begun = task("a")

    class ClosedMeanwhile(dict[str, Task]):
        def __setitem__(self, epoch: str, given: Task) -> None:
            closer = threading.Thread(target=lane.close, args=(True,))
            closer.start()
            closer.join(0.05)
            super().__setitem__(epoch, given)

    lane._tasks = ClosedMeanwhile()
    lane.begin(begun)
    wait_until(lambda: begun.given_up and begun.ended.is_set(), 5)


def test_forgetting_a_query_waits_for_no_other_that_is_being_forgotten() -> None:
    executor, forgotten, slow = ImpatientExecutor(), list[str](), threading.Event()

    def forget(epoch: str) -> None:
        forgotten.append(epoch)
        assert epoch != "a" or slow.wait(10)

    executor.forget = forget  # type: ignore[method-assign]
    lane = Lane(executor, Gate(lambda: executor).evaluate, lambda *given: 0, lambda: None)
    lane.begin(task("a"))
    lane.forget("a")
    wait_until(lambda: forgotten == ["a"])
    other = threading.Thread(target=lane.forget, args=("b",))
    other.start()
    other.join(5)
    slow.set()
    assert not other.is_alive() and forgotten == ["a", "b"]


def test_a_removal_is_told_while_the_pump_takes_in_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    slowed = WithLane([Register(1, "quick", "text", 1), Register(2, "slow", "maker", 2)])
    slowed.process()
    queries, streams = slowed.pump.queries, LiveQuery.streams

    def meanwhile(query: LiveQuery) -> tuple[str, ...]:
        queries[f"new {len(queries)}"] = queries["quick"]
        return streams.fget(query)  # type: ignore[attr-defined,no-any-return]

    monkeypatch.setattr(LiveQuery, "streams", property(meanwhile))
    slowed.log.removed.add(SLOW)
    slowed.pump.end_removed()
    assert slowed.executor.cancelled == {SLOW}


def test_a_verdict_of_the_lane_is_recorded_even_where_the_evaluator_has_ended() -> None:
    """As where a task of Spark SQL does not react to its end, and takes the JVM along: the next start must not try it again."""
    executor, verdicts = ImpatientExecutor(), list[tuple[str, str, int, str]]()

    def decide(name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
        verdicts.append((name, epoch, tick, error.limit))
        return 1

    executor.over["a"] = 10
    gate = Gate(lambda: executor)
    lane = Lane(executor, gate.evaluate, decide, lambda: None)
    lane.begin(task("a"))
    lane.close(cancel=False)
    gate.opened.set()
    wait_until(lambda: verdicts == [("a", "a", 10, "evaluation_ms")])


def test_who_ends_the_evaluator_in_the_lane_is_evaluated_alone_and_without_haste_afterwards() -> None:
    alive, deaths, executor = [False], dict[str, int](), ImpatientExecutor(q=0)
    suspects = Suspects(executor, deaths, lambda: alive[0], lambda: True)
    executor.failing.add("q")
    suspects.watched(Beside(executor).evaluate)(task("q").due, lambda: False)
    assert deaths == {"q": 1}
    executor.failing.clear()
    alive[0] = True
    [answer] = suspects.evaluate([replace(task("q").due, patience_ms=1)])
    assert answer.error is None and deaths == {}


def died(suspects: Suspects, query: str) -> BaseException | None:
    """The error of a query in whose evaluation the evaluator ends."""
    return suspects.evaluate([task(query).due])[0].error


class Mortal(ImpatientExecutor):
    """Gives no answers of "q"; with each it ends while it is `mortal`."""

    alive = mortal = True

    def __init__(self) -> None:
        super().__init__()
        self.failing.add("q")

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        self.alive = not self.mortal
        return super().evaluate(dues)


def test_who_may_not_have_ended_the_evaluator_has_not_failed() -> None:
    """Another was evaluated in the lane meanwhile. It is a suspect too from then on, and is evaluated alone after the restart."""
    deaths, executor = {"q": 1}, Mortal()
    suspects = Suspects(executor, deaths, lambda: executor.alive, lambda: True)

    class InLane(Beside):
        def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
            assert not isinstance(died(suspects, "q"), LimitExceeded)
            raise ConnectionResetError("the JVM has died")

    with pytest.raises(ConnectionResetError):
        suspects.watched(InLane(executor).evaluate)(task("beside").due, lambda: False)
    assert deaths == {"q": 2, "beside": 1}
    executor.alive, executor.mortal = True, False
    assert not isinstance(died(suspects, "q"), LimitExceeded), "it has not ended this time"
    executor.mortal = True
    assert isinstance(died(suspects, "q"), LimitExceeded)


def test_who_ends_the_evaluator_again_has_failed_even_where_the_executor_gives_no_answer() -> None:
    alive, executor = iter([True, False]), ImpatientExecutor()
    suspects = Suspects(executor, {"q": 1}, lambda: next(alive), lambda: True)

    def evaluate(dues: Sequence[Due]) -> list[Answer]:
        raise ConnectionResetError("the JVM has died")

    executor.evaluate = evaluate  # type: ignore[method-assign]
    error = died(suspects, "q")
    assert isinstance(error, LimitExceeded) and error.limit == "worker_deaths"


def test_what_is_given_up_in_the_lane_ends_nothing() -> None:
    deaths, executor = dict[str, int](), ImpatientExecutor()
    executor.failing.add("q")
    Suspects(executor, deaths, lambda: False, lambda: True).watched(Beside(executor).evaluate)(task("q").due, lambda: True)
    assert deaths == {}


class RunningBeside(Running):
    """An engine whose second query is slow until `gate` is opened."""

    def __init__(self, folder: Path, **more: Any) -> None:
        super().__init__(folder, **more)
        backend: Any = self.backend
        self.gate = Gate(ReferenceExecutor)
        start = backend.start

        def start_impatient(say: Any, on_death: Any) -> ReferenceExecutor:
            start(say, on_death)
            return ImpatientExecutor(**{SLOW: 0})

        backend.start, backend.beside = start_impatient, lambda: self.gate


def push(running: Running, *times: int) -> None:
    running.engine.push("s", [item(NOW + t, str(t)) for t in times])


def test_a_query_says_that_it_is_slow_and_its_results_come_without_further_records(tmp_path: Path) -> None:
    with RunningBeside(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        running.engine.register(TEXT.replace("QUERY q", "QUERY slow"))
        push(running, 100, 1_100, 2_100, 3_100)
        assert running.ticks(3) == [NOW + 1_000, NOW + 2_000, NOW + 3_000]
        assert not running.results("slow")
        assert running.engine.query("slow").progress["slow"] is True
        assert running.engine.query("q").progress["slow"] is False
        running.gate.opened.set()
        assert running.ticks(3, "slow") == [NOW + 1_000, NOW + 2_000, NOW + 3_000]
        running.until(lambda: running.engine.query("slow").progress["slow"] is False)


def test_a_query_whose_streams_are_idle_is_running_while_it_is_evaluated_beside_the_others(tmp_path: Path) -> None:
    with RunningBeside(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        running.engine.register(TEXT.replace("QUERY q", "QUERY slow"))
        push(running, 100, 1_100)
        running.gate.opened.set()
        assert running.ticks(1, "slow") == [NOW + 1_000]
        running.gate.opened.clear()
        push(running, 2_100, 3_100)
        assert running.ticks(3) == [NOW + 1_000, NOW + 2_000, NOW + 3_000]
        running.clock.advance(10_000)
        running.until(lambda: running.engine.query("q").state == "idle")
        slow = running.engine.query("slow")
        assert (slow.state, slow.progress["slow"], slow.progress["watermark"]) == ("running", True, "2023-11-14T22:13:21.100Z")
        assert slow.progress["watermarkLagMs"] == 2_000
        assert running.engine.query("q").progress["watermarkLagMs"] is None
        running.gate.opened.set()
        running.until(lambda: running.engine.query("slow").state == "idle")
        slow = running.engine.query("slow")
        assert (slow.progress["slow"], slow.progress["watermarkLagMs"]) == (False, None)


def test_a_server_stops_and_starts_again_while_something_is_in_the_lane(tmp_path: Path) -> None:
    with RunningBeside(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        running.engine.register(TEXT.replace("QUERY q", "QUERY slow"))
        push(running, 100, 1_100, 2_100)
        assert running.ticks(2) == [NOW + 1_000, NOW + 2_000]
        running.until(lambda: running.gate.asked == [SLOW])
        running.backend.die(RuntimeError("the JVM has died"))
        running.until(lambda: running.gate.asked == [SLOW, SLOW])
        assert running.engine.state in ("running", "restarting")
    with Running(tmp_path) as running:
        assert running.ticks(2, "slow") == [NOW + 1_000, NOW + 2_000]
        assert len(running.results("q")) == 2
