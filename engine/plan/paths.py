"""Property paths as plans (SPARQL 1.1 section 18.4): joins, unions, and closures that start from their bound end."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.ir import expressions as ex, patterns as ir
from engine.ir.terms import Constant, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan, Source
from engine.plan.variables import plan_variables, variables_among


@dataclass(frozen=True, slots=True)
class Paths:
    """Builds the paths of one place: a source, its graph term, and the substituted rows where the place is inside EXISTS. `empty` is the
    plan of a group without patterns there."""

    source: Source
    graph: Term | None
    seed: nodes.Seed | None
    empty: Plan
    fresh: Callable[[str], Variable]

    def plan(self, start: Term, path: ir.Path, end: Term, outer: Plan | None = None) -> Plan:
        """The pairs that a path connects, with the variables among `start`, `end` and the graph. `outer` is what the path will be joined
        with: a closure starts from what is bound there."""
        match path:
            case ir.Link(predicate=predicate):
                return nodes.Scan(self.source, start, predicate, end, self.graph)
            case ir.Inverse(path=inner):
                return self.plan(end, inner, start, outer)
            case ir.Sequence(first=first, second=second):
                middle = self.fresh("path")
                before = self.plan(start, first, middle, outer)
                joined = nodes.Join(before, self.plan(middle, second, end, before))
                return nodes.Project(joined, variables_among(start, end, self.graph))
            case ir.Alternative(first=first, second=second):
                return nodes.Union(self.plan(start, first, end, outer), self.plan(start, second, end, outer))
            case ir.NegatedSet():
                return self._negated(start, path, end)
            case ir.Repeat(path=inner, least=least, most=most):
                least = 0 if _nullable(inner) else least
                kept = variables_among(start, end, self.graph)
                some = self.plan(start, inner, end, outer) if most == 1 else self._closure(start, inner, end, outer)
                found: Plan = nodes.Project(some, kept)
                return nodes.Distinct(nodes.Union(found, self._zero_length(start, end)) if least == 0 else found)

    def _negated(self, start: Term, path: ir.NegatedSet, end: Term) -> Plan:
        sides: list[Plan] = []
        for excluded, (subject, object_) in ((path.forward, (start, end)), (path.backward, (end, start))):
            if excluded:
                predicate = self.fresh("path")
                scan = nodes.Scan(self.source, subject, predicate, object_, self.graph)
                test = ex.Call("NOT IN", (predicate, *excluded))
                sides.append(nodes.Project(nodes.Filter(scan, test), variables_among(start, end, self.graph)))
        return sides[0] if len(sides) == 1 else nodes.Union(sides[0], sides[1])

    def _closure(self, start: Term, path: ir.Path, end: Term, outer: Plan | None) -> Plan:
        """One or more steps, from the end that is bound; constants are met by the seed and by a filter."""
        before, after = self.fresh("path"), self.fresh("path")
        step = self.plan(before, path, after)
        forward = self._bound(start, outer) or not self._bound(end, outer)
        near, far = (start, end) if forward else (end, start)
        first = near if isinstance(near, Variable) else self.fresh("path")
        last = far if isinstance(far, Variable) and far != near else self.fresh("path")
        graph = self.graph if isinstance(self.graph, Variable) else None
        reach = nodes.Reach(step, (before, after) if forward else (after, before), first, last, graph, self._seed(near, first, outer))
        return reach if last == far else nodes.Filter(reach, ex.Call("SAMETERM", (last, far)))

    def _bound(self, term: Term, outer: Plan | None) -> bool:
        if isinstance(term, Constant):
            return True
        return outer is not None and term in plan_variables(outer) or self.seed is not None and term in self.seed.variables

    def _seed(self, near: Term, first: Variable, outer: Plan | None) -> Plan | None:
        if isinstance(near, Constant):
            return nodes.Values((first,), ((near,),))
        if outer is not None and near in plan_variables(outer):
            return outer
        return self.seed if self.seed is not None and near in self.seed.variables else None

    def _zero_length(self, start: Term, end: Term) -> Plan:
        """Every node to itself; a given end also where no triple names it, substituted ones included (section 18.4, ZeroLengthPath)."""
        match start, end:
            case Constant(), Constant():
                return self.empty if start == end else nodes.Values(variables_among(self.graph), ())
            case Variable(), Constant():
                return nodes.Join(self.empty, nodes.Values((start,), ((end,),)))
            case Constant(), Variable():
                return nodes.Join(self.empty, nodes.Values((end,), ((start,),)))
        assert isinstance(start, Variable) and isinstance(end, Variable)
        found = self._to_itself(nodes.Nodes(self.source, start, self.graph), start, end)
        for given, other in ((start, end), (end, start)):
            if self.seed is not None and given in self.seed.variables:
                substituted = nodes.Filter(nodes.Project(self.seed, (given,)), ex.Call("BOUND", (given,)))
                found = nodes.Union(nodes.Join(self.seed, found), self._to_itself(substituted, given, other))
        return found

    @staticmethod
    def _to_itself(plan: Plan, given: Variable, other: Variable) -> Plan:
        return plan if given == other else nodes.Extend(plan, other, given)


def _nullable(path: ir.Path) -> bool:
    """Whether a path has solutions of length zero, which a repetition then has as well."""
    match path:
        case ir.Repeat(path=inner, least=least):
            return least == 0 or _nullable(inner)
        case ir.Inverse(path=inner):
            return _nullable(inner)
        case ir.Sequence(first=first, second=second):
            return _nullable(first) and _nullable(second)
        case ir.Alternative(first=first, second=second):
            return _nullable(first) or _nullable(second)
    return False
