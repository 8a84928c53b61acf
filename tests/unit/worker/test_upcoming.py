"""When a program wakes by itself: what begins or ceases though nothing comes is told when the program has said that it would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ir.rules import RuleSet
from engine.plan.analyses import late_boxed, watched
from grammar.rule_sets import parse_rules
from tests.interval_runs import planned
from tests.unit.worker.test_timed_task import Steps, Told, oracle

LATE = """START AT 0
@T marked(X) <- go(X), [4] @T p(X).
steady(X) <- [2] box marked(X).
@1 p(a). @2 p(a). @3 p(a). @4 p(a). @4 go(a).
@5 p(b). @7 p(b). @7 go(b).
@20 p(c). @21 p(c). @22 p(c). @22 go(c).
"""
BOXED = """START AT 0
kept(X) <- [3 #] box p(X).
calm(X) <- q(X), not kept(X).
@1 p(a). @2 p(a). @3 p(b). @3 p(a). @4 p(a).
@9 p(c). @10 p(c). @2 q(a). @10 q(c).
"""
AROUND = """START AT 0
twice(X) <- [1] box recent(X).
recent(X) <- [2 #] diamond p(X).
@1 p(a). @2 p(b). @5 p(a). @5 p(c).
"""


def read(text: str) -> RuleSet:
    return parse_rules(text, "text/x-lars", "r")


def woken(rules: RuleSet, folder: Path, until: int) -> tuple[Told, list[int]]:
    """What is told up to a watermark where the program is taken on only when it has said that something comes, and these watermarks."""
    steps, at, ticks = Steps(rules, folder), 1_000, list[int]()
    found: Told = []
    while at <= until:
        ticks.append(at)
        outcome = steps.to(at)
        found += steps.told(outcome.rows)
        if outcome.next is None:
            break
        assert outcome.next > steps.past, "what is final comes no more"
        at = -(-(outcome.next // 2 + 1) // 1_000) * 1_000
    return found, ticks


@pytest.mark.parametrize("text", [LATE, BOXED, AROUND], ids=["late", "boxed", "around"])
def test_a_program_of_boxes_wakes_for_all_that_it_tells(text: str, tmp_path: Path) -> None:
    rules = read(text)
    found, ticks = woken(rules, tmp_path, 40_000)
    expected = oracle(rules, ticks)
    assert sorted(found) == sorted(expected) == sorted(oracle(rules, [40_000]))
    assert any(ceased for _, ceased, _ in found) and ticks == sorted(set(ticks))


def test_what_became_known_late_under_a_box_is_watched_at_each_granule(tmp_path: Path) -> None:
    """While such rows are held the box may begin or end at any granule; once they are forgotten nothing is due."""
    program = planned(read(LATE))
    [late] = late_boxed(program)
    assert ("marked/1", late) in program.late
    assert not late_boxed(planned(read(BOXED))) and not late_boxed(planned(read(AROUND)))
    _, ticks = woken(read(LATE), tmp_path, 40_000)
    seconds = [tick // 1_000 for tick in ticks]
    assert set(range(5, 10)) <= set(seconds), "a was marked at 4"
    assert not set(range(14, 20)) & set(seconds), "nothing is left of a and b"


def test_rows_of_a_boxed_window_say_themselves_when_they_end() -> None:
    """Those of a window without a box end with the step, because more is not known yet; those that are boxed have one granule each."""
    boxed, plain = planned(read(BOXED)), planned(read(AROUND))
    [window], [open_] = boxed.windows, plain.windows
    assert window.box is not None and open_.box is None
    assert not watched(boxed)[window.relation].is_open and watched(plain)[open_.relation].is_open
    assert watched(plain)["recent/1"].is_open and watched(plain)["recent/1"].boxes == (2_000,), "it begins by its length"
