"""Which plans can keep their answers with intervals, and as what.

Basic graph patterns with filters are monotone: an answer is valid while all its facts are (expiration times: Barbieri et al.,
"Incremental Reasoning on Streams and Rich Background Knowledge", section 4; valid windows: Monks et al., "Continuous Deductive
Reasoning over Streamed RDF Data"). New facts are joined with all facts; the answer relation is sampled at T.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.expressions import Expression, exists_in
from engine.ir.statement import Construct, Select, Statement, TimeWindow
from engine.ir.terms import Constant, OneOf, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan, Scan, WindowSource
from engine.timeline import ON_CHANGE_STEP


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """The scans in join order, the filters over them, and for each window its step in ms (1 for REPORT ON CHANGE)."""

    scans: tuple[Scan, ...]
    filters: tuple[Expression, ...]
    steps: tuple[int, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable of the pattern; an answer is a set over them."""
        return tuple(dict.fromkeys(t for s in self.scans for t in (*s.terms, s.graph) if isinstance(t, Variable)))

    @property
    def star(self) -> Variable | None:
        """The common subject, where every scan shares it and names its predicate: new answers then come from touched subjects."""
        first = self.scans[0]
        same = all(s.subject == first.subject and s.source == first.source and isinstance(s.predicate, Constant)
                   and s.graph is None and s.object != s.subject for s in self.scans)
        objects = [s.object for s in self.scans if isinstance(s.object, Variable)]
        plain = len(set(objects)) == len(objects) and not any(isinstance(s.object, OneOf) for s in self.scans)
        return first.subject if same and plain and isinstance(first.subject, Variable) and len(self.scans) > 1 else None


def delta_plan(statement: Statement, plan: Plan, on_change: bool) -> DeltaPlan | None:
    """The incremental form of a plan, or None where it has none."""
    if not isinstance(statement.query, (Select, Construct)) or not statement.streams:
        return None
    if fresh_blanks(statement.query) or not all(isinstance(s.window, TimeWindow) for s in statement.streams):
        return None
    parts = conjunction(plan)
    if parts is None or not all(isinstance(scan.source, WindowSource) for scan in parts[0]):
        return None
    steps = tuple(ON_CHANGE_STEP if on_change else s.window.step_ms for s in statement.streams if isinstance(s.window, TimeWindow))
    return DeltaPlan(*parts, steps)


def fresh_blanks(query: Select | Construct) -> bool:
    """Whether each solution makes blank nodes of its own."""
    return isinstance(query, Construct) and any(v.name.startswith("_:") for t in query.template for v in t.terms if isinstance(v, Variable))


def conjunction(plan: Plan) -> tuple[tuple[Scan, ...], tuple[Expression, ...]] | None:
    """The scans of a basic graph pattern in join order and the filters over them; None for other plans."""
    scans: list[Scan] = []
    filters: list[Expression] = []
    found = _collect(plan.input if isinstance(plan, nodes.Project) else plan, scans, filters)
    return (tuple(scans), tuple(filters)) if found and scans else None


def _collect(plan: Plan, scans: list[Scan], filters: list[Expression]) -> bool:
    match plan:
        case Scan():
            scans.append(plan)
            return True
        case nodes.Star(scans=parts):
            scans.extend(parts)
            return True
        case nodes.Join(left=left, right=right):
            return _collect(left, scans, filters) and _collect(right, scans, filters)
        case nodes.Filter(input=below, condition=condition):
            filters.append(condition)
            return not any(exists_in(condition)) and _collect(below, scans, filters)
    return False
