"""Evaluations that go over a limit: the query fails alone, the log says so before anybody sees it, and whoever reads the log agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.ir.spans import DiagnosticError
from engine.ir.statement import Statement, StreamSource, TimeWindow
from engine.limits import EvaluationLimits, LimitExceeded
from engine.records import Event, Record, Register, Resume, Unregister, Verdict
from engine.runtime.batch import Limits
from engine.runtime.errors import EngineError
from engine.runtime.pump import Pump
from engine.runtime.resources import Item
from engine.runtime.results import ResultLog
from engine.runtime.rows import ROWS, Control, Kind, control_rows, controls, verdict_payload
from tests.encoded import encode
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, P, Running, S
from tests.unit.runtime.test_pump import A, SELECT, items, shown

STATEMENT = Statement(SELECT, "text", "q", "query", streams=(StreamSource(A, TimeWindow(10, 10)),))
HEAD: list[Record] = [Register(1, "quick", "text", 1), Register(2, "slow", "text", 2)]
QUICK, SLOW = "q1c1", "q2c1"


def events(first: int, times: Sequence[int]) -> list[Record]:
    return [Event(position, A, t, None, ((f"<s{t}>", "<p>", '"1"'),), t) for position, t in enumerate(times, first)]


class Log:
    """An input log in memory, and pumps that read it."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.table = encode(records)
        self.removed: set[str] = set()

    def decide(self, name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
        position = self.table["position"][-1].as_py() + 1
        payload = verdict_payload(Verdict(position, name, epoch, tick, error.limit, error.detail))
        self.table = pa.concat_tables([self.table, control_rows(Control(position, Kind.VERDICT, name, None, payload))])
        return position

    def append(self, records: Sequence[Record]) -> None:
        self.table = pa.concat_tables([self.table, encode(records)])

    @property
    def last(self) -> int:
        return int(self.table["position"][-1].as_py())

    def following(self, position: int) -> list[Control]:
        return [control for control in controls(self.table) if control.position > position]

    def pump(self, results: ResultLog, *, over: int | None = None) -> Pump:
        """A pump that goes on where `results` end; from the time `over` on the second query is too slow."""
        executor = ReferenceExecutor()
        if over is not None:
            executor.over[SLOW] = over
        pump = Pump(executor, results, {"text": STATEMENT}.__getitem__, lambda statement, name, graphs, rules: ReferenceCompiled(statement),
                    history=lambda needed, position: [items(self.table, position)],
                    decide=self.decide, later=self.following, stands=lambda epoch: epoch not in self.removed,
                    limits=Limits(evaluation=EvaluationLimits()))
        pump.restore()
        return pump

    def process(self, pump: Pump, until: int) -> None:
        inside = pc.and_(pc.greater(self.table["position"], pump.position), pc.less_equal(self.table["position"], until))
        pump.process(self.table.filter(inside).cast(ROWS))


def logged(results: ResultLog) -> list[tuple[object, ...]]:
    return [shown(event) for name in ("quick", "slow") for event in results.read(name, 0)]


def tried(pump: Pump, epoch: str) -> list[int]:
    executor = pump.executor
    assert isinstance(executor, ReferenceExecutor)
    return [tick for query, tick in executor.tried if query == epoch]


def test_a_query_over_a_limit_fails_alone_and_the_log_has_the_verdict() -> None:
    log, results = Log([*HEAD, *events(3, [5, 15, 25, 35])]), ResultLog(None)
    pump = log.pump(results, over=20)
    log.process(pump, 6)
    assert [event.tick for event in results.read("quick", 0)] == [10, 20, 30]
    assert [event.tick for event in results.read("slow", 0)] == [10]
    assert (pump.queries["quick"].state, pump.queries["slow"].state) == ("running", "failed")
    assert pump.queries["slow"].error == "LimitExceeded: it took longer; the limit evaluation_ms is 20000"
    [verdict] = log.following(6)
    assert (verdict.kind, verdict.stream) == (Kind.VERDICT, "slow")
    assert verdict.payload == {"epoch": SLOW, "tick": 20, "limit": "evaluation_ms",
                               "detail": "it took longer; the limit evaluation_ms is 20000"}


def test_a_crash_between_verdict_and_commit_gives_the_same_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log, results = Log([*HEAD, *events(3, [5, 15, 25, 35])]), ResultLog(tmp_path / "db")
    pump = log.pump(results, over=20)
    log.process(pump, 2)

    def crash(changes: object, now_ms: int) -> None:
        raise OSError("the power is gone")

    monkeypatch.setattr(results, "commit", crash)
    with pytest.raises(OSError, match="power"):
        log.process(pump, 6)
    results.close()
    assert len(log.following(6)) == 1

    again = ResultLog(tmp_path / "db")
    restarted = log.pump(again)     # quick enough this time, but the log says otherwise
    log.process(restarted, log.last)
    assert tried(restarted, SLOW) == [10]
    undisturbed = ResultLog(None)
    whole = Log([*HEAD, *events(3, [5, 15, 25, 35])])
    log_pump = whole.pump(undisturbed, over=20)
    whole.process(log_pump, whole.last)
    assert logged(again) == logged(undisturbed)
    assert restarted.queries["slow"].state == "failed"
    assert restarted.queries["slow"].error == log_pump.queries["slow"].error
    assert len(log.following(6)) == 1, "a verdict that is known is not logged again"
    again.close()


@pytest.mark.parametrize("cuts", [(), (3,), (4,), (7,), (3, 4, 5, 6, 7, 8)])
def test_a_log_read_again_gives_the_same_results_however_it_is_cut(cuts: tuple[int, ...]) -> None:
    log, results = Log([*HEAD, *events(3, [5, 15, 25])]), ResultLog(None)
    pump = log.pump(results, over=20)
    log.process(pump, 5)
    log.append([Resume(7, "slow", False), *events(8, [35, 45, 55])])
    executor = pump.executor
    assert isinstance(executor, ReferenceExecutor)
    executor.over.clear()
    log.process(pump, log.last)
    assert [event.tick for event in results.read("slow", 0)] == [10, 40, 50]

    fresh = ResultLog(None)
    following = log.pump(fresh)     # as a new server with the log alone
    for cut in (*cuts, log.last):
        log.process(following, cut)
    assert tried(following, SLOW) == [10, 40, 50]
    assert logged(fresh) == logged(results)


def test_a_query_whose_removal_stands_in_the_log_is_not_evaluated_after_a_start() -> None:
    log = Log([*HEAD, *events(3, [5, 15, 25]), Unregister(6, "slow"), *events(7, [35]), Register(8, "slow", "text", 8),
               *events(9, [45, 55])])
    results = ResultLog(None)
    log.removed.add(SLOW)
    pump = log.pump(results)
    for position in range(1, log.last + 1):
        log.process(pump, position)
    assert tried(pump, SLOW) == []
    assert tried(pump, QUICK) == [10, 20, 30, 40, 50]
    assert [event.tick for event in results.read("slow", 0)] == [50]


def test_a_removal_ends_what_is_being_evaluated() -> None:
    log, results = Log([*HEAD, *events(3, [5, 15])]), ResultLog(None)
    pump = log.pump(results)
    log.process(pump, 3)
    log.append([Unregister(5, "slow")])
    log.removed.add(SLOW)
    pump.end_removed()
    executor = pump.executor
    assert isinstance(executor, ReferenceExecutor)
    assert executor.cancelled == {SLOW}
    log.process(pump, log.last)
    assert tried(pump, SLOW) == []
    assert list(pump.queries) == ["quick"]


def test_a_cancelled_evaluation_fails_nobody() -> None:
    log, results = Log([*HEAD, *events(3, [5, 15])]), ResultLog(None)
    pump = log.pump(results)
    executor = pump.executor
    assert isinstance(executor, ReferenceExecutor)
    evaluate = executor.evaluate

    def removed_meanwhile(dues: Sequence[object]) -> object:
        log.removed.add(SLOW)
        pump.end_removed()
        return evaluate(dues)  # type: ignore[arg-type]

    executor.evaluate = removed_meanwhile  # type: ignore[method-assign,assignment]
    log.process(pump, 4)
    assert pump.queries["slow"].state == "running"
    assert [event.tick for event in results.read("quick", 0)] == [10]
    assert not log.following(4)


def test_a_long_batch_is_committed_in_parts() -> None:
    log, results = Log([*HEAD, *events(3, range(5, 50_005, 10))]), ResultLog(None)
    pump = log.pump(results)
    parts = [part.num_rows for part in pump.parts(log.table)]
    assert parts == [log.table.num_rows], "nothing is expected while no query lives"
    log.process(pump, 2)
    rows = log.table.filter(pc.greater(log.table["position"], 2))
    parts = [part["position"][-1].as_py() for part in pump.parts(rows)]
    assert len(parts) > 4
    reached = []
    for part in pump.parts(rows):
        outcome = pump.process(part)
        assert outcome.ticks <= 2 * 2_000
        reached.append(results.position)
    assert reached == parts
    assert parts[-1] == log.last


def test_a_server_can_be_started_with_all_queries_paused(tmp_path: Path) -> None:
    def push(running: Running, *times: int) -> None:
        receipt = running.engine.push("s", [Item(NOW + t, None, ((S, P, f'"{t}"'),)) for t in times])
        running.until(lambda: running.engine.results.position >= int(receipt.last_id or 0))

    with Running(tmp_path / "data") as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        push(running, 500, 1_500, 2_500)
        before = running.ticks(2)
    paused = Running(tmp_path / "data", paused=True)
    with paused:
        assert paused.engine.query("q").state == "paused"
        push(paused, 3_500, 4_500)
        assert [event.tick for event in paused.results()] == before
        paused.engine.patch_query("q", "running", "backlog")
        assert paused.ticks(4)[:2] == before
    with Running(tmp_path / "data") as running:
        assert running.engine.query("q").state in ("running", "idle")


def test_windows_that_hold_too_many_rows_fail_their_query_alone() -> None:
    log, results = Log([Register(1, "quick", "text", 1)]), ResultLog(None)
    log.append([*events(2, range(11, 20)), *events(11, [25])])
    pump = log.pump(results)
    pump._limits = replace(pump._limits, evaluation=EvaluationLimits(state_rows=8))
    log.process(pump, log.last)
    assert pump.queries["quick"].error == "LimitExceeded: its windows hold 9 rows; the limit state_rows is 8"
    assert [control.kind for control in log.following(11)] == [Kind.VERDICT]


def test_a_query_may_have_lower_limits_of_its_own_and_no_higher_ones(tmp_path: Path) -> None:
    with Running(tmp_path / "data") as running:
        running.engine.put_stream("s", EVENTS)
        info, _ = running.engine.register(TEXT, options={"limits": {"evaluation_ms": 50, "state_rows": 1_000}})
        assert info.options == {"limits": {"evaluation_ms": 50, "state_rows": 1_000}}
        assert EvaluationLimits().own(info.options["limits"]) == EvaluationLimits(evaluation_ms=50, state_rows=1_000)
        for value, slug in (({"evaluation_ms": 60_000}, "over-limit"), ({"evaluation_ms": 0}, "unknown-parameter"),
                            ({"none": 1}, "unknown-parameter"), (7, "unknown-parameter")):
            with pytest.raises(EngineError) as refused:
                running.engine.register(TEXT, "other", {"limits": value})
            assert refused.value.slug == slug
            if slug == "over-limit":
                assert refused.value.extra == {"limit": "evaluation_ms", "most": 20_000, "actual": 60_000}


@pytest.mark.parametrize(("window", "numbers"), [("[RANGE 1h STEP 1ms]", "3600000"), ("[TRIPLES 999999999]", "999999999"),
                                                 ("[ITEMS 5000000]", "5000000")])
def test_a_window_that_would_be_too_much_is_refused_with_the_numbers(window: str, numbers: str, tmp_path: Path) -> None:
    with Running(tmp_path / "data") as running:
        running.engine.put_stream("s", EVENTS)
        with pytest.raises(DiagnosticError) as refused:
            running.engine.register(TEXT.replace("[RANGE 2s STEP 1s]", window))
        [diagnostic] = refused.value.diagnostics
        assert diagnostic.code == "over-limit"
        assert numbers in diagnostic.message and ("20000" in diagnostic.message or "1000000" in diagnostic.message)


def test_a_product_that_would_be_too_much_is_refused_with_the_numbers(tmp_path: Path) -> None:
    head, _, _ = TEXT.partition("WHERE")
    product = head.replace("QUERY q", "QUERY product") + "WHERE { ?s ?b ?o . ?d ?e ?f . ?g ?h ?i }"
    with Running(tmp_path / "data") as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        receipt = running.engine.push("s", [Item(NOW, None, tuple((S, P, f'"{n}"') for n in range(2_000)))])
        running.until(lambda: running.engine.results.position >= int(receipt.last_id or 0))
        assert running.engine.explain(product)["estimate"] == {"windowRows": 400, "productRows": 400**3}
        running.engine.settings = replace(running.engine.settings, product_rows=1_000_000)
        with pytest.raises(EngineError) as refused:
            running.engine.register(product)
        assert (refused.value.slug, refused.value.extra) == ("over-limit", {"limit": "product_rows", "most": 1_000_000, "actual": 400**3})
        running.engine.settings = replace(running.engine.settings, evaluation=EvaluationLimits(state_rows=399))
        with pytest.raises(EngineError) as refused:
            running.engine.register(TEXT.replace("QUERY q", "QUERY much"))
        assert refused.value.extra == {"limit": "state_rows", "most": 399, "actual": 400}
