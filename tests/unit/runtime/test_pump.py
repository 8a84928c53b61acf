"""The pump against the reference: any log, cut in any way, stopped and resumed anywhere, gives what the oracle gives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.patterns import BGP, Project, TriplePattern
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet
from engine.ir.statement import (Ask, Construct, NowWindow, Query, RuleSource, Select, Statement, StreamSource, TimeWindow, TupleWindow,
                                 Window)
from engine.ir.terms import Constant, Variable
from engine.records import End, Event, GraphVersion, Idle, Mark, Pause, Record, Register, Resume, RulesVersion, Unregister
from engine.reference import streams as oracle
from engine.runtime.batch import LogGapError
from engine.output import payloads
from engine.runtime.pump import Pump
from engine.runtime.resources import ResultEvent
from engine.runtime.results import ResultLog
from engine.timeline import MIN
from tests.encoded import encode
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor, as_table

A, B = "http://ex.org/a", "http://ex.org/b"
MADE = ("http://ex.org/made0", "http://ex.org/made1")
S, OBJECT = Variable("s"), Variable("o")
PATTERN = BGP((TriplePattern(S, Constant("<p>"), OBJECT),))
SELECT = Select(Project(PATTERN, (S, OBJECT)), (S, OBJECT))
QUERIES: list[Query] = [SELECT, Ask(PATTERN), Construct((TriplePattern(S, Constant("<q>"), OBJECT),), PATTERN)]
ONE, TWO, NINE = (Constant(f'"{value}"') for value in (1, 2, 9))
RULES = {text: RuleSet("r", (Rule(Atom(TRIPLE, (S, Constant("<p>"), found)), (Atom(TRIPLE, (S, Constant("<p>"), given)),)),))
         for text, found, given in (("2 if 1", TWO, ONE), ("9 if 2", NINE, TWO))}
CHAINED = Construct((TriplePattern(S, Constant("<p>"), OBJECT),), PATTERN)

times = st.integers(0, 60)
windows: st.SearchStrategy[Window] = st.one_of(
    st.builds(TimeWindow, st.integers(1, 12), st.integers(1, 9), st.sampled_from([0, 0, 3])),
    st.builds(TupleWindow, st.integers(1, 3), st.sampled_from(["triples", "items"])), st.just(NowWindow()))


@st.composite
def statements(draw: st.DrawFn, number: int) -> Statement:
    """The first two may make a stream, the later ones read the streams of those before."""
    makes = number < len(MADE) and draw(st.booleans())
    streams = [A, A, B, *2 * MADE[:number]]
    sources = [StreamSource(draw(st.sampled_from(streams)), draw(windows)) for _ in range(draw(st.integers(1, 2)))]
    query = CHAINED if makes else draw(st.sampled_from(QUERIES))
    return Statement(query, repr(draw(st.integers(0, 10**9))), MADE[number] if makes else "q", "stream" if makes else "query",
                     streams=tuple(sources), rules=draw(st.sampled_from([(), (RuleSource("r"),)])),
                     output=draw(st.sampled_from(["rstream", "istream", "dstream"])),
                     report=draw(st.sampled_from(["close", "close", "change", "full"])),
                     compute_every_ms=draw(st.sampled_from([None, None, 4])), start_at_ms=draw(st.sampled_from([0, 2])))


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Record], dict[str, Statement]]:
    """A log of two streams with idle times, marks, late starters and queries that come and go."""
    texts = {f"text {i}": draw(statements(i)) for i in range(3)}
    records: list[Record] = [Register(1, "q0", "text 0", 1)]
    marks = {A: MIN, B: MIN}
    for _ in range(draw(st.integers(1, 25))):
        position = len(records) + 1
        stream = draw(st.sampled_from([A, A, B]))
        match draw(st.sampled_from(["event"] * 8 + ["mark", "idle", "register", "graph", "unregister", "rules", "rules"])):
            case "event":
                t = max(marks[stream], draw(times))
                marks[stream] = max(marks[stream], t - draw(st.sampled_from([0, 0, 5])))
                triples = tuple((f"<{draw(st.sampled_from('xyz'))}>", "<p>", f'"{draw(st.integers(0, 2))}"')
                                for _ in range(draw(st.integers(1, 2))))
                records.append(Event(position, stream, t, None, triples, marks[stream]))
            case "mark":
                marks[stream] = max(marks[stream], draw(times))
                records.append(Mark(position, stream, marks[stream]))
            case "idle":
                records.append(Idle(position, stream))
            case "register":
                number = draw(st.integers(1, 2))
                records.append(Register(position, f"q{number}", f"text {number}", position))
            case "unregister":
                records.append(Unregister(position, "q2"))
            case "graph":
                records.append(GraphVersion(position, "http://ex.org/g", (("<x>", "<p>", '"0"'),)))
            case "rules":
                records.append(RulesVersion(position, "r", "text/x-rules", draw(st.sampled_from([*RULES, None]))))
    if draw(st.booleans()):
        records.append(End(len(records) + 1))
    return records, texts


def make_pump(results: ResultLog, parsed: Mapping[str, Statement], folder: Path | None = None, log: pa.Table | None = None) -> Pump:
    return Pump(ReferenceExecutor(), results, parsed.__getitem__,
                lambda statement, name, graphs, rules: ReferenceCompiled(statement, "", rules), parse_rules=parse_rules,
                graph_folder=folder,
                history=lambda needed, position: [] if log is None else [items(log, position)])


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    assert media == "text/x-rules"
    return RULES[text]


def items(log: pa.Table, position: int) -> pa.Table:
    return log.filter(pc.and_(pc.less_equal(log["position"], position), pc.equal(log["record"], 0)))


def shown(event: ResultEvent) -> tuple[object, ...]:
    """What must not depend on how it was run."""
    if event.kind == "graph":
        answer: object = sorted(event.payload.decode().splitlines())
    else:
        document = json.loads(event.payload)
        answer = document.get("boolean", sorted(map(repr, document.get("results", {}).get("bindings", ()))))
    return event.query, event.id, event.tick, event.at_ms, answer


def expected(records: Sequence[Record], parsed: Mapping[str, Statement]) -> list[tuple[str, int, int, object]]:
    from engine.output import payload
    found = []
    for name, evaluations in oracle.run(records, parsed.__getitem__, parse_rules).items():
        for evaluation in evaluations:
            event = ResultEvent(name, "", 0, evaluation.tick, evaluation.at, "graph" if evaluation.result.form == "CONSTRUCT" else "result",
                                "", payload(evaluation.result.form, as_table(evaluation.result)))
            found.append((name, evaluation.tick, evaluation.at, shown(event)[4]))
    return sorted(found, key=lambda entry: entry[:2])


def without_ids(events: Iterable[ResultEvent]) -> list[tuple[str, int, int, object]]:
    entries = [shown(event) for event in events]
    return sorted(((str(e[0]), int(e[2]), int(e[3]), e[4]) for e in entries), key=lambda entry: entry[:2])  # type: ignore[call-overload]


def run_whole(records: Sequence[Record], parsed: Mapping[str, Statement]) -> list[ResultEvent]:
    return make_pump(ResultLog(None), parsed).process(encode(records)).results


@given(logs())
def test_one_batch_gives_what_the_reference_gives(log: tuple[list[Record], dict[str, Statement]]) -> None:
    records, parsed = log
    assert without_ids(run_whole(records, parsed)) == expected(records, parsed)


@given(logs(), st.lists(st.integers(0, 30), max_size=4))
def test_the_cut_into_batches_does_not_matter(log: tuple[list[Record], dict[str, Statement]], cuts: list[int]) -> None:
    records, parsed = log
    pump, whole, found = make_pump(ResultLog(None), parsed), make_pump(ResultLog(None), parsed), list[ResultEvent]()
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(records)], strict=True):
        found += pump.process(encode(records[begin:end])).results
    assert sorted(map(shown, found), key=str) == sorted(map(shown, whole.process(encode(records)).results), key=str)
    for name in ("q0", "q1", "q2"):     # those of a query that was removed or replaced within a batch do not stay
        assert list(map(shown, pump.results.read(name, 0))) == list(map(shown, whole.results.read(name, 0)))


@st.composite
def paused_logs(draw: st.DrawFn) -> tuple[list[Record], dict[str, Statement]]:
    """Logs in which queries are paused and resumed, too."""
    records, texts = draw(logs())
    listed = list[Record]()
    for record in records:
        listed.append(record)
        if not isinstance(record, End) and draw(st.integers(0, 4)) == 0:
            query = draw(st.sampled_from(["q0", "q1", "q2"]))
            listed.append(draw(st.sampled_from([Pause(0, query), Resume(0, query, True), Resume(0, query, False)])))
    places = {record.position: place for place, record in reversed(list(enumerate(listed, 1)))}
    return [replace(record, position=place, **({"since": places[record.since]} if isinstance(record, Register) and record.since else {}))
            for place, record in enumerate(listed, 1)], texts


def standing(pump: Pump) -> dict[str, Any]:
    """How far each query is."""
    return {name: (query.state, query.seq, query.evaluated, query.reached, query.behind, query.next_tick, query.ticker.filled)
            for name, query in pump.queries.items()}


@given(paused_logs(), st.dictionaries(st.integers(1, 40), st.booleans(), min_size=1, max_size=10))
def test_stopping_and_resuming_does_not_matter(tmp_path_factory: pytest.TempPathFactory,
                                               log: tuple[list[Record], dict[str, Statement]], cuts: dict[int, bool]) -> None:
    """In batches that end at `cuts`; behind those that are true the pump is made anew from what was written."""
    records, parsed = log
    folder = tmp_path_factory.mktemp("pump")
    whole = encode(records)

    def made() -> tuple[ResultLog, Pump]:
        results = ResultLog(folder / "thalweg.db")
        pump = make_pump(results, parsed, folder, whole)
        pump.restore()
        return results, pump

    (results, pump), found, begin = made(), list[ResultEvent](), 0
    for end, stopped in sorted({**{cut: ended for cut, ended in cuts.items() if cut < len(records)}, len(records): False}.items()):
        found += pump.process(encode(records[begin:end])).results
        begin = end
        if stopped:
            before = standing(pump)
            results.close()
            results, pump = made()
            assert pump.position == end and standing(pump) == before
    results.close()
    assert sorted(map(shown, found), key=str) == sorted(map(shown, run_whole(records, parsed)), key=str)


def statement(window: Window, output: str = "rstream", **more: object) -> Statement:
    return Statement(SELECT, "text", "q", streams=(StreamSource(A, window),), output=output, **more)  # type: ignore[arg-type]


def event(position: int, t: int, watermark: int | None = None, stream: str = A) -> Event:
    return Event(position, stream, t, None, (("<x>", "<p>", f'"{t}"'),), t if watermark is None else watermark)


def test_a_year_without_events_costs_nothing() -> None:
    parsed = {"text": statement(TimeWindow(10_000, 1_000))}
    year = 365 * 86_400_000
    records = [Register(1, "q", "text", 1), event(2, 500), event(3, year), event(4, year + 2_000)]
    assert [e.tick for e in run_whole(records, parsed)] == [*range(1_000, 12_000, 1_000), year + 1_000, year + 2_000]


def test_more_ticks_than_a_job_takes() -> None:
    parsed = {"text": statement(TupleWindow(1, "triples"), compute_every_ms=1)}
    found = run_whole([Register(1, "q", "text", 1), event(2, 0), event(3, 2_000)], parsed)
    assert [e.tick for e in found] == list(range(1, 2_001))


def test_a_gap_in_the_log_is_noticed() -> None:
    pump = make_pump(ResultLog(None), {"text": statement(TimeWindow(10, 10))})
    pump.process(encode([Register(1, "q", "text", 1)]))
    with pytest.raises(LogGapError):
        pump.process(encode([event(3, 5)]))


def test_what_was_processed_is_left_out() -> None:
    records = [Register(1, "q", "text", 1), event(2, 5), event(3, 15)]
    pump = make_pump(ResultLog(None), {"text": statement(TimeWindow(10, 10))})
    first = pump.process(encode(records[:2])).results + pump.process(encode(records)).results
    assert [e.id for e in first] == ["q1c1-1"]


def test_rows_may_come_in_any_order() -> None:
    records = [Register(1, "q", "text", 1), event(2, 5), event(3, 15)]
    table = encode(records)
    pump = make_pump(ResultLog(None), {"text": statement(TimeWindow(10, 10))})
    assert len(pump.process(table.take(pa.array([2, 0, 1]))).results) == 1


def test_a_failing_query_leaves_the_others_alone() -> None:
    parsed = {"text": statement(TimeWindow(10, 10))}
    pump = make_pump(ResultLog(None), parsed)
    pump.executor.failing.add("q1c1")  # type: ignore[attr-defined]
    outcome = pump.process(encode([Register(1, "bad", "text", 1), Register(2, "good", "text", 2), event(3, 5), event(4, 25)]))
    assert {e.query for e in outcome.results} == {"good"}
    assert pump.queries["bad"].state == "failed" and "told to fail" in str(pump.queries["bad"].error)
    pump.executor.failing.clear()  # type: ignore[attr-defined]
    again = pump.process(encode([Resume(5, "bad", False), event(6, 35), event(7, 45)]))
    assert [(e.tick, e.seq) for e in again.results if e.query == "bad"] == [(40, 1)]


@pytest.mark.parametrize("cut", [3, 4, 5, 6, 7, 8])
def test_an_answer_that_cannot_be_written_fails_its_query_alone(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the log is cut: the results before it are there."""
    def refuse(form: str, tables: Sequence[pa.Table]) -> list[bytes]:
        if form == "SELECT" and any('"12"' in table["o"].to_pylist() for table in tables):
            raise ValueError("told to fail")
        return payloads(form, tables)

    for module in ("runtime.query", "output"):
        monkeypatch.setattr(f"engine.{module}.payloads", refuse)
    parsed = {"text": statement(TimeWindow(10, 10)), "other": statement(TimeWindow(5, 10)),
              "ask": Statement(Ask(PATTERN), "ask", "good", streams=(StreamSource(A, TimeWindow(10, 10)),))}
    records = [Register(1, "bad", "text", 1), Register(2, "good", "ask", 2), Register(3, "beside", "other", 3), event(4, 5), event(5, 12),
               event(6, 15), event(7, 25), event(8, 35)]
    results = ResultLog(None)
    pump = make_pump(results, parsed)
    for part in (records[:cut], records[cut:]):
        pump.process(encode(part))
    assert [e.tick for e in results.read("bad", 0)] == [10]
    assert all([e.tick for e in results.read(name, 0)] == [10, 20, 30] for name in ("good", "beside"))
    assert pump.queries["bad"].state == "failed" and "told to fail" in str(pump.queries["bad"].error)


def test_results_with_the_same_variables_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    by_itself: list[str] = []

    def note(form: str, tables: Sequence[pa.Table]) -> list[bytes]:
        by_itself.extend([form] * len(tables))
        return payloads(form, tables)

    monkeypatch.setattr("engine.runtime.query.payloads", note)
    parsed = {"one": statement(TimeWindow(10, 10)), "other": statement(TimeWindow(5, 10)),
              "ask": Statement(Ask(PATTERN), "ask", "third", streams=(StreamSource(A, TimeWindow(10, 10)),))}
    names = {"first": "one", "second": "other", "third": "ask"}
    records = [Register(n, query, text, n) for n, (query, text) in enumerate(names.items(), 1)]
    results = ResultLog(None)
    make_pump(results, parsed).process(encode([*records, event(4, 5), event(5, 12)]))
    assert all([e.tick for e in results.read(name, 0)] == [10] for name in names) and by_itself == ["ASK"]


def test_pause_and_resume_with_and_without_the_backlog() -> None:
    parsed = {"text": statement(TimeWindow(10, 10))}
    for backlog, ticks in ((True, [10, 20, 30, 40]), (False, [10, 40])):
        records = [Register(1, "q", "text", 1), event(2, 5), event(3, 12), Pause(4, "q"), event(5, 25), event(6, 32),
                   Resume(7, "q", backlog), event(8, 45)]
        assert [e.tick for e in run_whole(records, parsed)] == ticks


def test_a_replaced_query_begins_a_new_epoch() -> None:
    parsed = {"text": statement(TimeWindow(10, 10)), "other": statement(TimeWindow(20, 10))}
    results = ResultLog(None)
    pump = make_pump(results, parsed)
    pump.process(encode([Register(1, "q", "text", 1), event(2, 5), event(3, 15)]))
    pump.process(encode([Register(4, "q", "other", 4), event(5, 16), event(6, 25)]))
    assert [(e.id, e.tick) for e in results.read("q", 0)] == [("q1c2-1", 20)]


def test_eviction_keeps_what_a_window_may_still_see() -> None:
    pump = make_pump(ResultLog(None), {"text": statement(TimeWindow(10, 5))})
    pump.process(encode([Register(1, "q", "text", 1), *(event(i + 2, i) for i in range(100))]))
    assert pump.kept.contents[A].rows <= 20
    pump.process(encode([Unregister(102, "q")]))
    assert pump.kept.contents[A].rows == 0
