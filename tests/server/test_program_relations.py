"""All that rule programs hold: snapshots and feeds with mode=full, over pauses, restarts and limits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from engine.ir.notation import date_time_ms
from engine.runtime.resources import ResultEvent
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import Frame
from server.feeds.options import Options
from server.limits import Limits
from tests.server.test_timed_programs import DMTL, FROM, HERE, HOT, LARS, Timed
from tests.unit.runtime.test_engine import NOW
from tests.waiting import wait_until

RIF = """Document(
  Prefix(ex <http://ex.org/>)
  Import(<http://ex.org/s> <https://w3id.org/rsp/vocals#RDFStream>)
  Window 3 s
  Group( Forall ?x ?v (?x[ex:is -> ex:here] :- ?x[ex:p -> ?v]) )
)
"""
TABLE = {"Accept": "application/sparql-results+json"}
Fact = tuple[str, float]
"""A subject and from when on it holds, in seconds."""


class Programs(Timed):
    """With a feed that is polled by hand."""

    exchange: Exchange

    def __init__(self, folder: Path, limits: Limits = Limits(), **more: Any) -> None:
        super().__init__(folder, **more)
        self.limits = limits

    def __enter__(self) -> Programs:
        super().__enter__()
        self.client.put("/streams/s", json={"iri": "http://ex.org/s", "time": "event"})
        self.exchange = Exchange(self.engine, self.limits)
        self.exchange.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.exchange.stop()
        super().__exit__(*failure)

    def feed(self, name: str, **options: Any) -> Opened:
        return Opened(self, Feed(self.exchange, name, Options(mode=options.pop("mode", "full"), **options), lambda: None))

    def now(self, name: str, asked: str = "mode=full") -> list[Fact]:
        answer = self.client.get(f"/queries/{name}/results?{asked}", headers=TABLE)
        assert answer.status_code == 200, answer.text
        return facts(answer.get_json())


class Opened:
    """A feed that has said hello; `begin` are the events after that."""

    def __init__(self, programs: Programs, feed: Feed) -> None:
        self.feed, self.now_s = feed, 0.0
        self.hello, *self.begin = feed.open(NOW)

    def shown(self, count: int) -> list[tuple[float, list[Fact]]]:
        """The next `count` results: when, in seconds, and what holds then."""
        found: list[Frame] = []

        def polled() -> bool:
            self.now_s += 1
            found.extend(frame for frame in self.feed.poll(self.now_s, True) or [] if frame.event in ("result", "bye"))
            return len(found) >= count
        wait_until(polled, 10)
        self.feed.close()
        return [at(frame) for frame in found]


def facts(data: Any) -> list[Fact]:
    return sorted((_short(row.get("s", row.get("a1"))["value"]), _second(row["from"]["value"])) for row in data["results"]["bindings"])


def at(frame: Frame) -> tuple[float, list[Fact]]:
    data = orjson.loads(frame.data)
    assert "stream" not in data["rsp"]
    return _second(data["rsp"]["at"]), facts(data)


def _short(text: str) -> str:
    return text.rpartition("/")[2]


def _second(text: str) -> float:
    ms = date_time_ms(text)
    assert ms is not None
    return (ms - NOW) / 1000


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with Programs(tmp_path) as found:
        yield found


def stay(programs: Programs, *items: tuple[float, str, int]) -> None:
    programs.put("here", HERE, DMTL)
    programs.push(*(items or ((0, "a", 1), (2, "a", 1), (4, "a", 1), (4, "b", 1), (20, "c", 1))))


SHOWN = [(0, [("a", 0)]), (4, [("a", 0), ("a", 4), ("b", 4)]), (7, [])]
"""What HERE holds over the items of `stay`, up to the last one."""


def test_a_snapshot_is_what_holds_at_the_last_evaluation(programs: Programs) -> None:
    programs.put("here", HERE, DMTL)
    first = programs.client.get("/queries/here/results?mode=full", headers=TABLE)
    assert (first.status_code, first.headers["RSP-Event-Id"], first.get_json()["results"]["bindings"]) == (200, "none", [])
    programs.push((0, "a", 1), (2, "a", 1), (4, "a", 1), (4, "b", 1))
    programs.push((5, "c", 1))
    answer = programs.client.get("/queries/here/results?snapshot=true", headers=TABLE)
    assert facts(answer.get_json()) == programs.now("here") == [("a", 0), ("a", 4), ("b", 4)]
    assert answer.get_json()["head"]["vars"] == ["s", "p", "o", "from", "until"] and answer.headers["RSP-Event-Id"] == "q1c1-2"
    assert programs.client.get("/queries/here/results?mode=full", headers={"Accept": "text/csv"}).text.count("\n") == 4
    programs.push((6, "d", 1))
    assert programs.now("here") == [("a", 0), ("a", 4), ("b", 4), ("c", 5)]


def test_a_feed_in_full_mode_begins_with_all_that_holds_and_shows_it_at_each_time(programs: Programs) -> None:
    stay(programs)
    whole = programs.feed("here", since="earliest")
    assert whole.begin == [] and orjson.loads(whole.hello.data)["mode"] == "full"
    assert whole.shown(3) == SHOWN, "one event for each time, though stream P and stream N both tell of it"
    programs.push((21, "d", 1))
    live = programs.feed("here")
    [snapshot] = live.begin
    assert snapshot.event == "snapshot" and at(snapshot) == (20, [("c", 20)])
    programs.push((22, "e", 1))
    programs.push((23.5, "e", 1))
    assert live.shown(3) == [(21, [("c", 20), ("d", 21)]), (22, [("c", 20), ("d", 21), ("e", 22)]), (23, [("d", 21), ("e", 22)])]


def test_a_feed_of_changes_begins_with_a_snapshot_if_it_is_asked_for(programs: Programs) -> None:
    stay(programs, (0, "a", 1), (1, "b", 1), (2, "c", 1))
    [snapshot] = programs.feed("here", mode=None, snapshot=True).begin
    assert snapshot.event == "snapshot" and at(snapshot) == (1, [("a", 0), ("b", 1)])
    assert programs.feed("here", mode=None).begin == [] and programs.feed("here", snapshot=False).begin == []
    assert programs.feed("here", since="latest").begin == []


def test_what_holds_survives_a_restart(tmp_path: Path) -> None:
    with Programs(tmp_path) as first:
        stay(first, (0, "a", 1), (2, "a", 1))
        first.push((4, "a", 1), (4, "b", 1))
        first.push((4.5, "c", 1))
        before = first.now("here")
    assert before == [("a", 0), ("a", 4), ("b", 4)]
    with Programs(tmp_path) as second:
        assert second.now("here") == before
        live = second.feed("here")
        assert at(live.begin[0]) == (4, before)
        old = second.feed("here", last_event_id="q1c1-1")
        assert old.begin == []
        second.push((20, "d", 1))
        after = [(4.5, [*before, ("c", 4.5)]), (7, [("c", 4.5)]), (7.5, [])]
        assert live.shown(3) == after, "7: a (twice) and b cease"
        assert old.shown(4) == [(4, before), *after], "what held at an older result follows from what is kept and the log"


def test_results_do_not_depend_on_pushes(tmp_path: Path) -> None:
    items = [(0.0, "a", 1), (1, "b", 1), (1.5, "a", 1), (2, "c", 1), (4, "a", 1), (6, "b", 1), (7, "a", 1), (20, "c", 1)]
    found = []
    for number, step in enumerate((1, 3, len(items))):
        with Programs(tmp_path / str(number)) as programs:
            programs.put("here", HERE, DMTL)
            for first in range(0, len(items), step):
                programs.push(*items[first:first + step])
            results = programs.results("here")
            shown = programs.feed("here", since="earliest").shown(len({event.at_ms for event in results}))
            found.append(shown)
            assert [whole for _, whole in shown] == folded(results)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kept", [1, 4])
def test_a_feed_goes_on_behind_any_result(tmp_path: Path, kept: int) -> None:
    """In whatever order clients come, on the ring and behind it, over a pause of which nothing is told."""
    rng = random.Random(kept)
    with Programs(tmp_path, limits=Limits(ring_events=3, relations_kept=kept), now_ms=NOW + 600_000) as programs:
        programs.put("here", HERE, DMTL)
        second = 0.0
        for step in range(60):
            second += rng.choice((0.5, 1, 1.5, 4))
            programs.push((second, rng.choice("abcde"), 1))
            if step in (20, 40):
                programs.client.patch("/queries/here", json={"state": "paused"})
            if step in (24, 43):
                programs.client.patch("/queries/here", json={"state": "running", "resume": "now"})
                programs.settle()
        results = [event for event in programs.results("here") if not event.meta.get("goesOn")]
        assert any("unsaid" in event.meta for event in results) and len(results) > 40
        expected = [((event.at_ms - NOW) / 1000, holds) for event, holds in zip(results, folded(programs.results("here")))]
        assert programs.feed("here", since="earliest").shown(len(results)) == expected
        for place in rng.sample(range(len(results) - 1), 25):
            count = min(3, len(results) - place - 1)
            shown = programs.feed("here", last_event_id=results[place].id).shown(count)[:count]
            assert shown == expected[place + 1:place + 1 + count], place


def folded(results: Sequence[ResultEvent]) -> list[list[Fact]]:
    """What holds at each T, by what the results tell."""
    holds, found = Counter[Fact](), list[list[Fact]]()
    for event in results:
        changed = Counter(facts(orjson.loads(event.payload)))
        holds = holds - Counter(facts({"results": {"bindings": event.meta.get("unsaid", [])}}))
        holds = holds + changed if event.stream == "p" else holds - changed
        if not event.meta.get("goesOn"):
            found.append(sorted(holds.elements()))
    return found


def test_what_ceases_while_nothing_is_told_is_gone(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        stay(programs, (0, "a", 1), (1, "b", 1), (1.5, "b", 1))
        assert programs.now("here") == [("a", 0), ("b", 1)]
        programs.client.patch("/queries/here", json={"state": "paused"})
        programs.push((10, "c", 1), (10.5, "c", 1))
        programs.client.patch("/queries/here", json={"state": "running", "resume": "now"})
        programs.settle()
        programs.push((11, "d", 1))
        assert programs.now("here") == [], "a and b ceased, c began in the pause"
    with Programs(tmp_path) as programs:
        assert programs.now("here") == []
        programs.push((12, "e", 1))
        assert programs.now("here") == [("d", 11)]
        assert programs.feed("here", since="earliest").shown(3) == [(0, [("a", 0)]), (1, [("a", 0), ("b", 1)]), (11, [("d", 11)])]
        assert at(programs.feed("here").begin[0]) == (11, [("d", 11)])


def test_a_program_that_begins_anew_holds_nothing_yet(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        stay(programs, (0, "a", 1), (1, "a", 1))
        [lost] = programs.settings.states_folder.glob("q1c1-*.arrow")
    lost.unlink()
    with Programs(tmp_path) as programs:
        programs.push((2, "b", 1))
        assert programs.client.get("/queries/here").get_json()["state"] == "failed"
        assert programs.now("here") == [("a", 0)], "the last that is known"
        programs.client.post("/queries/here/restart")
        programs.settle()
        assert programs.now("here") == []
        programs.push((3, "c", 1), (3.5, "c", 1))
        assert programs.now("here") == [("c", 3)]
        assert programs.feed("here", since="earliest").shown(2) == [(0, [("a", 0)]), (3, [("c", 3)])]
        assert programs.put("here", HERE.replace("[0,3]", "[0,2]"), DMTL, replace="true").status_code == 201
        programs.settle()
        assert programs.now("here") == []
    with Programs(tmp_path) as programs:
        assert programs.now("here") == [], "what its predecessor held is not its own"


def test_a_relation_of_more_rows_than_results_have_says_so(tmp_path: Path) -> None:
    with Programs(tmp_path, max_result_rows=2) as programs:
        stay(programs, (0, "c", 1), (1, "a", 1), (2, "b", 1), (2.5, "d", 1))
        answer = programs.client.get("/queries/here/results?mode=full", headers=TABLE)
        assert facts(answer.get_json()) == [("a", 1), ("b", 2)] and answer.headers["RSP-Truncated"] == "2"
        programs.push((3.5, "e", 1))
        feed = programs.feed("here", since="earliest")
        assert feed.shown(5) == [(0, [("c", 0)]), (1, [("a", 1), ("c", 0)]), (2, [("a", 1), ("b", 2)]), (2.5, [("a", 1), ("b", 2)]),
                                 (3, [("a", 1), ("b", 2)])]


def test_a_result_that_was_cut_is_known_whole_where_it_is_the_last(tmp_path: Path) -> None:
    with Programs(tmp_path, max_result_rows=2) as programs:
        stay(programs, (0, "a", 1), (0, "b", 1), (0, "c", 1), (1, "d", 1))
        feed = programs.feed("here")
        [snapshot] = feed.begin
        assert at(snapshot) == (0, [("a", 0), ("b", 0)]) and orjson.loads(snapshot.data)["rsp"]["truncated"]
        programs.push((20, "e", 1), (22, "f", 1))
        assert feed.shown(4)[1:] == [(3, [("d", 1)]), (4, []), (20, [("e", 20)])]


def test_a_program_of_granules_and_one_in_rif_core_have_it_too(programs: Programs) -> None:
    programs.put("hot", HOT, LARS)
    assert programs.client.put("/queries/is", data=RIF, content_type="text/x-rif-ps").status_code == 201
    programs.push((0, "a", 95), (1, "b", 95), (4.5, "c", 95))
    assert programs.now("hot") == [("b", 1)] and programs.now("is") == []
    assert programs.feed("hot", since="earliest").shown(3) == [(0, [("a", 0)]), (1, [("a", 0), ("b", 1)]), (3, [("b", 1)])]
    assert programs.feed("is", since="earliest").shown(4) == [(0, [("a", 0)]), (1, [("a", 0), ("b", 1)]), (3, [("b", 1)]), (4, [])]
    programs.push((5, "c", 95), (6, "d", 95))
    assert programs.now("is") == [("c", 4.5), ("c", 5)] and programs.now("hot") == [("c", 4)]
    row = programs.client.get("/queries/is/results?mode=full", headers=TABLE).get_json()["results"]["bindings"][0]
    assert date_time_ms(row["until"]["value"]) == NOW + 7_500, "which a program in RIF-Core tells when a fact begins"


def test_what_holds_for_ever_is_shown(programs: Programs) -> None:
    programs.put("known", FROM + "ex:Known(X) :- Diamondminus[0,inf)ex:p(X,Y)\n", DMTL)
    for second in range(5):
        programs.push((second, f"x{second}", 1))
    assert programs.now("known") == [(f"x{number}", number) for number in range(4)]
    assert programs.feed("known", last_event_id="q1c1-2").shown(2)[-1] == (3, [(f"x{number}", number) for number in range(4)])


def test_stream_and_full_mode_do_not_go_together(programs: Programs) -> None:
    programs.put("here", HERE, DMTL)
    refused = programs.client.get("/queries/here/results?mode=full&stream=n", headers=TABLE)
    assert (refused.status_code, refused.get_json()["parameter"]) == (400, "stream")
