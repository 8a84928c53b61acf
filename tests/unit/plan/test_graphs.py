"""Closures of paths as graph problems in plans: the way follows the number of edges, and is shown."""

from __future__ import annotations

from engine.ir.terms import Variable
from engine.plan import nodes
from engine.plan.explain import explain_plan
from engine.plan.graphs import MOST_IN_A_TASK, choose
from engine.plan.nodes import Plan, Scan, WindowSource
from engine.plan.order import Estimate

V = {name: Variable(name) for name in "abcdr"}
STEP = Scan(WindowSource(0), V["c"], V["r"], V["d"])


def test_the_way_follows_the_edges() -> None:
    assert (choose(0), choose(MOST_IN_A_TASK), choose(MOST_IN_A_TASK + 1)) == ("task", "task", "sql")


def test_closures_show_their_way() -> None:
    reach: Plan = nodes.Reach(STEP, (V["c"], V["d"]), V["a"], V["b"])
    most = MOST_IN_A_TASK
    assert explain_plan(reach, Estimate(total=70)).splitlines()[0] == "Reach ?a to ?b, all pairs, in one task  ~70 edges"
    assert explain_plan(reach, Estimate(total=most + 1)).splitlines()[0].endswith(f"in rounds of Spark SQL  ~{most + 1} edges")
