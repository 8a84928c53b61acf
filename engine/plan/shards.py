"""Which parts of a plan shards can evaluate, each over its share of the facts: those in whose patterns of windows one variable stands, as
subject or object.

The facts of a pattern are shared out by the hash of what the variable stands for there. Facts that join by the variable are then in one
shard, so each solution is found in one shard, once. What a pattern without the variable reads is in every shard whole: that pays where it
is little. A Gather stands above the largest parts of this kind; what is above it is evaluated once, over what the shards have found
(partitioned hash joins: Schneider and DeWitt, "A Performance Evaluation of Four Parallel Join Algorithms", 1989).

Of a closure that shards make together (exchange.py) each has the facts about its subjects: so they share out what has the variable as
subject, or none, and none of them has all of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.ir.expressions import exists_in
from engine.ir.statement import StreamSource, TimeWindow
from engine.ir.terms import Variable
from engine.plan import nodes
from engine.plan.kept import Fixed
from engine.plan.nodes import (ClosedSource, Key, MergedSource, Plan, RestSource, Scan, ShareSource, Source, StaticSource, WindowSource,
                               closures)
from engine.plan.order import Estimate

Kind = Literal["keyed", "loose", "own", "whole", "none"]
"""What a shard has of a plan's solutions. keyed: those of its share by the variable; loose: the same, but the variable is projected away;
own: those inside EXISTS that belong to the outer solutions of this shard; whole: all; none: the plan cannot be evaluated in shards."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """A plan as shards evaluate it."""

    plan: Plan
    kind: Kind


def with_shards(plan: Plan, streams: Sequence[StreamSource], estimate: Estimate, fixed: Fixed) -> Plan | None:
    """The plan with what shards can evaluate under Gather nodes; None where something else reads windows, too."""
    if not any(map(_windows, nodes.sources(plan))):
        return plan
    if (found := _best(plan, streams, estimate, fixed)) is not None:
        return nodes.Gather(found)
    match plan:
        case Scan() if (source := _keyed(plan.source, "s", streams)) is not None and closures((source,)):
            return nodes.Gather(replace(plan, source=source))
        case nodes.Join() | nodes.LeftJoin() | nodes.Minus() | nodes.Union():
            left, right = (with_shards(below, streams, estimate, fixed) for below in (plan.left, plan.right))
            return None if left is None or right is None else replace(plan, left=left, right=right)
        case (nodes.Filter() | nodes.Extend() | nodes.Project() | nodes.Distinct() | nodes.Order() | nodes.Aggregate()
              | nodes.Slice(own=None)):
            below = with_shards(plan.input, streams, estimate, fixed)
            return None if below is None else replace(plan, input=below)
    return None


def _best(plan: Plan, streams: Sequence[StreamSource], estimate: Estimate, fixed: Fixed) -> Plan | None:
    """The plan shared out by the variable by which most of what its windows' patterns find is; at least half of it must be."""
    best, most = None, 0.0
    for variable in _candidates(plan):
        shared = _Sharing(variable, streams, fixed).of(plan)
        if shared.kind not in ("keyed", "loose"):
            continue
        divided, whole = _rows(shared.plan, estimate)
        if divided >= whole and (best is None or divided > most):
            best, most = shared.plan, divided
    return best


def _candidates(plan: Plan) -> Iterable[Variable]:
    """The subjects and objects of its patterns, in order."""
    return dict.fromkeys(term for scan in nodes.scans_of(plan) for term in (scan.subject, scan.object) if isinstance(term, Variable))


def _rows(plan: Plan, estimate: Estimate) -> tuple[float, float]:
    """How many facts the patterns of windows find that are shared out, and in every shard."""
    divided = whole = 0.0
    for scan in nodes.scans_of(plan):
        if _windows(scan.source):
            rows = max(1.0, estimate.rows(scan))
            keyed = any(leaf.key for leaf in nodes.leaf_sources(scan.source) if isinstance(leaf, (WindowSource, nodes.ValiditySource)))
            divided, whole = divided + rows * keyed, whole + rows * (not keyed)
    return divided, whole


def _windows(source: Source) -> bool:
    """Whether a source shows something of a window."""
    return isinstance(source, nodes.BoundsSource) or any(not isinstance(leaf, StaticSource) for leaf in nodes.leaf_sources(source))


class _Sharing:
    """Shares plans out by one variable. What several nodes share they share still."""

    def __init__(self, variable: Variable, streams: Sequence[StreamSource], fixed: Fixed) -> None:
        self._variable, self._streams, self._fixed = variable, streams, fixed
        self._done: dict[int, tuple[Plan, _Shared]] = {}

    def of(self, plan: Plan) -> _Shared:
        """The plan as shards evaluate it: every shard all of it where it cannot be shared out."""
        if id(plan) not in self._done:
            self._done[id(plan)] = plan, self._shared(plan) or _whole(plan)
        return self._done[id(plan)][1]

    def _shared(self, plan: Plan) -> _Shared | None:
        match plan:
            case Scan():
                return self._scan(plan)
            case nodes.Star(scans=scans):
                found = [self.of(scan) for scan in scans]
                same = scans[0].subject == self._variable and all(one.kind == "keyed" for one in found)
                return _Shared(nodes.Star(tuple(one.plan for one in found)), "keyed") if same else None     # type: ignore[misc]
            case nodes.Join():
                return self._join(plan)
            case nodes.LeftJoin() | nodes.Minus():
                return self._beside(plan)
            case nodes.Union():
                left, right = self.of(plan.left), self.of(plan.right)
                return _Shared(replace(plan, left=left.plan, right=right.plan), "keyed") if left.kind == right.kind == "keyed" else None
            case nodes.Otherwise():
                left, matched = self.of(plan.left), self.of(plan.matched)
                return _Shared(replace(plan, left=left.plan, matched=matched.plan), "keyed") if (
                    left.kind == matched.kind == "keyed" and self._variable not in plan.rebound) else None
            case nodes.Filter() | nodes.Extend() | nodes.Project() | nodes.Distinct() | nodes.Aggregate() | nodes.Lookup():
                below = self.of(plan.input)
                above = self._above(plan, below.kind)
                return None if above is None else _Shared(replace(plan, input=below.plan), above)
            case nodes.Mark():
                return self._mark(plan)
            case nodes.Seed():
                outer = self.of(plan.outer)
                kind: Kind = "whole" if outer.kind == "whole" else "keyed" if self._variable in plan.variables else "own"
                return _Shared(replace(plan, outer=outer.plan), kind)
        return None

    def _above(self, plan: Plan, kind: Kind) -> Kind | None:
        """What shards have of a plan by what they have of the one below."""
        match plan:
            case nodes.Filter(condition=read) | nodes.Extend(expression=read):
                return kind if self._fixed(read) and not any(exists_in(read)) else None
            case nodes.Project(variables=variables):
                return "loose" if kind == "keyed" and self._variable not in variables else kind
            case nodes.Aggregate(keys=keys) if self._variable not in keys:
                return None
            case nodes.Distinct() | nodes.Aggregate():
                return kind if kind == "keyed" else None
            case nodes.Lookup(table=nodes.WindowTimes()):
                return kind
        return None

    def _scan(self, scan: Scan) -> _Shared | None:
        key: Key = "s" if scan.subject == self._variable else "o" if scan.object == self._variable else ""
        source = _keyed(scan.source, key, self._streams) if key else None
        return None if source is None else _Shared(replace(scan, source=source), "keyed")

    def _join(self, plan: nodes.Join) -> _Shared | None:
        left, right = self.of(plan.left), self.of(plan.right)
        kinds = {left.kind, right.kind}
        if "own" in kinds and kinds != {"own"}:     # what belongs to solutions of this shard has partners in others
            left, right = ((_whole(below) if one.kind == "keyed" and not _seeded(below) else one)
                           for one, below in ((left, plan.left), (right, plan.right)))
            kinds = {left.kind, right.kind}
        kind: Kind | None = next((kind for kind in ("keyed", "loose", "own") if kinds in ({kind, "whole"}, {"keyed"})), None)
        return None if kind is None else _Shared(nodes.Join(left.plan, right.plan), kind)

    def _beside(self, plan: nodes.LeftJoin | nodes.Minus) -> _Shared | None:
        """Each row of the left with what it has on the right."""
        left, right = self.of(plan.left), self.of(plan.right)
        if left.kind != "keyed" and right.kind == "keyed" and not _seeded(plan.right):
            right = _whole(plan.right)
        if left.kind == "whole" or right.kind not in ("keyed", "whole") or left.kind != "keyed" and right.kind != "whole":
            return None
        return _Shared(replace(plan, left=left.plan, right=right.plan), left.kind)

    def _mark(self, plan: nodes.Mark) -> _Shared | None:
        below = self.of(plan.input)
        if below.kind != "keyed" or not plan.seeded or self.of(plan.seed.outer).kind != "keyed":
            return None
        inner, seed = self.of(plan.inner), self.of(plan.seed)
        if inner.kind not in ("keyed", "own") or not isinstance(seed.plan, nodes.Seed):
            return None
        return _Shared(replace(plan, input=below.plan, inner=inner.plan, seed=seed.plan), "keyed")


def _keyed(source: Source, key: Key, streams: Sequence[StreamSource]) -> Source | None:
    """What a shard has of a source; None where that cannot be told by the facts alone."""
    match source:
        case WindowSource(index=index) if isinstance(streams[index].window, TimeWindow):
            return WindowSource(index, key)
        case StaticSource(iri=iri):
            return StaticSource(iri, key)
        case ClosedSource() | RestSource() if key == "s" and all(closed.is_static or closed.exchange for closed in closures((source,))):
            return ShareSource(source)
        case MergedSource(parts=parts):
            found = [_keyed(part, key, streams) for part in parts]
            return None if None in found or not parts else MergedSource(tuple(found))   # type: ignore[arg-type]
    return None


def _whole(plan: Plan) -> _Shared:
    """A plan of which every shard evaluates all, where that can be."""
    has_all = all(closed.exchange is None for closed in closures(nodes.sources(plan)))
    return _Shared(plan, "whole" if has_all and not _seeded(plan) else "none")


def _seeded(plan: Plan) -> bool:
    """Whether it looks at the solutions around an EXISTS."""
    return isinstance(plan, nodes.Seed) or any(map(_seeded, nodes.inputs(plan)))
