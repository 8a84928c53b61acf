"""Join order: fewest rows first, always connected, stars together; and new counts change it."""

from __future__ import annotations

from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.plan.nodes import Scan, WindowSource
from engine.plan.order import Estimate, join_order

X, Y, Z, W = map(Variable, "xyzw")
SOURCE = WindowSource(0)


def scan(s: Variable, p: str, o: Variable | Constant) -> Scan:
    return Scan(SOURCE, s, Constant(p), o)


def test_the_rarest_predicate_comes_first_and_joins_stay_connected() -> None:
    scans = [scan(X, "<often>", Y), scan(Z, "<some>", W), scan(Y, "<rare>", Z)]
    order = join_order(scans, Estimate(1110, {"<often>": 1000, "<some>": 100, "<rare>": 10}))
    assert [group[0].predicate.token for group in order] == ["<rare>", "<some>", "<often>"]  # type: ignore[union-attr]


def test_patterns_of_one_subject_are_one_group() -> None:
    order = join_order([scan(X, "<p>", Y), scan(Z, "<q>", X), scan(X, "<r>", W)], Estimate())
    assert sorted(len(group) for group in order) == [1, 2]


def test_an_unconnected_group_comes_last() -> None:
    scans = [scan(X, "<p>", Y), scan(Z, "<rare>", W), scan(Y, "<q>", X)]
    order = join_order(scans, Estimate(300, {"<p>": 10, "<q>": 250, "<rare>": 20}))
    assert order[-1][0].predicate == Constant("<rare>")


def test_a_class_counts_its_own_instances() -> None:
    estimate = Estimate(100, {RDF_TYPE: 90, "<p>": 10}, {"<C>": 2, "<D>": 88})
    assert estimate.rows(Scan(SOURCE, X, Constant(RDF_TYPE), Constant("<C>"))) == 2
    assert estimate.rows(scan(X, "<p>", Y)) == 10
    assert estimate.rows(scan(X, "<never>", Y)) == 0
