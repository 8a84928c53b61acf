"""Graph problems in plans: chains of free predicates become one node, closures show how they are solved."""

from __future__ import annotations

from engine.ir.terms import Constant, Variable
from engine.plan import nodes
from engine.plan.explain import explain_plan
from engine.plan.graphs import LIMITS, with_chains
from engine.plan.nodes import Chain, Join, Plan, Project, Scan, WindowSource
from engine.plan.order import Estimate

V = {name: Variable(name) for name in "abcdpqr"}


def scan(subject: str, predicate: str, object_: str, window: int = 0) -> Scan:
    return Scan(WindowSource(window), V[subject], V[predicate], V[object_])


FIRST, SECOND, THIRD = scan("a", "p", "b"), scan("b", "q", "c"), scan("c", "r", "d")


def test_joins_become_a_chain_in_any_order() -> None:
    for join in (Join(Join(FIRST, SECOND), THIRD), Join(Join(SECOND, FIRST), THIRD), Join(Join(THIRD, SECOND), FIRST),
                 Join(FIRST, Join(THIRD, SECOND))):
        assert with_chains(Project(join, (V["a"],))) == Project(Chain((FIRST, SECOND, THIRD)), (V["a"],))


def test_what_is_no_chain_stays() -> None:
    bound = Scan(WindowSource(0), V["b"], Constant("<http://p>"), V["c"])
    for join in (Join(FIRST, bound), Join(FIRST, scan("b", "p", "c")), Join(FIRST, scan("b", "q", "a")), Join(FIRST, THIRD),
                 Join(FIRST, scan("c", "q", "b")), Join(FIRST, scan("b", "q", "c", window=1)), Join(FIRST, scan("b", "q", "b"))):
        assert with_chains(join) is join


def test_what_is_shared_stays_shared() -> None:
    """A seed is the very plan that the closure is joined with."""
    outer = Join(FIRST, SECOND)
    found = with_chains(Join(outer, nodes.Reach(THIRD, (V["c"], V["d"]), V["b"], V["r"], seed=outer)))
    assert isinstance(found, Join) and isinstance(found.right, nodes.Reach)
    assert found.left == Chain((FIRST, SECOND)) and found.right.seed is found.left


def test_closures_show_their_way() -> None:
    reach: Plan = nodes.Reach(THIRD, (V["c"], V["d"]), V["a"], V["b"])
    most, _ = LIMITS["reachability"]
    assert explain_plan(reach, Estimate(total=70)).splitlines()[0] == "Reach ?a to ?b, all pairs, in one task  ~70 edges"
    assert explain_plan(reach, Estimate(total=most + 1)).splitlines()[0].endswith(f"in rounds of Spark SQL  ~{most + 1} edges")
