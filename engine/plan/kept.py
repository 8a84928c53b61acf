"""Which parts of a plan are kept between evaluations: basic graph patterns with filters over windows of time and static graphs.

What such a pattern finds is monotone: a solution is seen by a window at T where all of its facts are. So it is kept with the times of its
oldest and its newest fact, and each batch adds what its new facts find (expiration times: Barbieri et al., "Incremental Reasoning on
Streams and Rich Background Knowledge", section 4; valid windows: Monks et al., "Continuous Deductive Reasoning over Streamed RDF Data").
Windows of any RANGE and STEP over the same streams read one relation; patterns that differ in the names of variables only have one, too.
Where many queries differ in their constants and filters, one `general` relation without these serves them all (sharing of nodes: Forgy,
"Rete", 1982); each applies its own above.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from engine.ir.expressions import Call, Expression, exists_in, variables_of
from engine.ir.statement import StreamSource, TimeWindow
from engine.ir.substitution import replaced_in
from engine.ir.terms import RDF_TYPE, Constant, PatternTerm, Variable
from engine.plan import nodes
from engine.plan.nodes import Filter, KeptSource, Mark, MergedSource, Plan, Project, Sample, Scan, Source, StaticSource, WindowSource
from engine.plan.variables import plan_variables

Fixed = Callable[[Expression], bool]
"""Whether the value of an expression follows from its variables alone, at any time."""


def with_kept(plan: Plan, streams: Sequence[StreamSource], fixed: Fixed, *, general: bool = False) -> Plan:
    """The plan with a Sample in place of each part that can be kept, or with what a `general` relation gives of it. What
    several nodes share they share still."""
    done: dict[int, tuple[Plan, Plan]] = {}

    def again(plan: Plan) -> Plan:
        if id(plan) not in done:
            done[id(plan)] = plan, _sample(plan, streams, fixed, general) or with_condition(plan) or below(plan)
        return done[id(plan)][1]

    def filtered(plan: Plan, condition: Expression) -> Plan | None:
        """A sample of what a plan finds for which a condition on what it binds holds."""
        parts = conjunction(plan)
        if parts is None or any(exists_in(condition)) or not variables_of(condition) <= {*nodes.scan_variables(*parts[0])}:
            return None
        return _sample(Filter(plan, condition), streams, fixed, general)

    def with_condition(plan: Plan) -> Plan | None:
        """A condition on what a pattern binds is kept with the pattern, also inside EXISTS and before OPTIONAL."""
        match plan:
            case Filter(input=nodes.Join(left=nodes.Seed() as seed, right=inner), condition=condition):
                sample = filtered(inner, condition)
                return None if sample is None else nodes.Join(again(seed), sample)
            case Filter(input=nodes.LeftJoin(left=left, right=right), condition=condition):
                sample = filtered(left, condition)
                return None if sample is None else nodes.LeftJoin(sample, again(right))
            case Filter(input=nodes.Otherwise(left=left, matched=matched, rebound=rebound), condition=condition):
                sample, both = filtered(left, condition), filtered(matched, condition)
                return None if sample is None or both is None else nodes.Otherwise(sample, both, rebound)
        return None

    def below(plan: Plan) -> Plan:
        if isinstance(plan, Mark) and (sample := _unseeded(plan, streams, fixed, general)) is not None:
            return Mark(again(plan.input), sample, plan.variable, plan.seed, seeded=False)
        return nodes.with_below(plan, again)

    return again(plan)


def _unseeded(plan: Mark, streams: Sequence[StreamSource], fixed: Fixed, general: bool) -> Plan | None:
    """What EXISTS looks for as a sample of all that its pattern finds, where each row and the pattern bind what they share; else None."""
    pattern, filters = plan.inner, list[Expression]()
    while isinstance(pattern, Filter):
        filters.append(pattern.condition)
        pattern = pattern.input
    if not isinstance(pattern, nodes.Join) or pattern.left is not plan.seed:
        return None
    pattern = pattern.right
    shared = frozenset(plan.seed.variables)
    if conjunction(pattern) is None or not shared or not shared <= plan_variables(pattern) & _bound(plan.input):
        return None
    for condition in reversed(filters):
        pattern = Filter(pattern, condition)
    return _sample(pattern, streams, fixed, general)


def _bound(plan: Plan) -> frozenset[Variable]:
    """Variables that every solution binds, as far as that is plain to see."""
    match plan:
        case Filter(input=below) | Mark(input=below):
            return _bound(below)
    return frozenset() if conjunction(plan) is None else plan_variables(plan)


def conjunction(plan: Plan) -> tuple[tuple[Scan, ...], tuple[Expression, ...]] | None:
    """The scans of a basic graph pattern in join order and the filters over them; None for other plans."""
    scans: list[Scan] = []
    filters: list[Expression] = []
    found = _collect(plan, scans, filters)
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


def _sample(plan: Plan, streams: Sequence[StreamSource], fixed: Fixed, general: bool) -> Plan | None:
    """The plan as a sample of a relation of its own, or of a general one; None where that does not serve."""
    parts = conjunction(plan)
    if parts is None:
        return None
    scans, filters = parts
    found = [leaves(scan.source) for scan in scans]
    windows = tuple(dict.fromkeys(leaf for own in found for leaf in own or () if isinstance(leaf, WindowSource)))
    if None in found or not windows or not all(isinstance(streams[leaf.index].window, TimeWindow) for leaf in windows):
        return None
    if not all(map(fixed, filters)):
        return None
    if not any(isinstance(term, Constant) for scan in scans for term in scan.terms) or not _connected(scans):
        return None
    variables = nodes.scan_variables(*scans)
    if not general or not _is_star(scans):
        return None if len(scans) == 1 and not filters else Sample(_source(scans, filters, windows, streams, variables), variables)
    opened, same = _without_constants(scans)
    every = nodes.scan_variables(*opened)
    rows: Plan = Sample(_source(opened, (), windows, streams, every), every)
    for condition in (*same, *filters):
        rows = Filter(rows, condition)
    return Project(rows, variables) if same else rows


def _is_star(scans: Sequence[Scan]) -> bool:
    """Whether scans are about one subject, each with another property: without constants and filters they find about as much as there are
    facts, where other patterns may find a product."""
    properties = [scan.predicate for scan in scans]
    return all(scan.subject == scans[0].subject and isinstance(scan.predicate, Constant) for scan in scans) and (
        len(set(properties)) == len(properties))


def _without_constants(scans: Sequence[Scan]) -> tuple[list[Scan], list[Expression]]:
    """The scans with variables in place of constants, but for properties and classes, in an order that does not depend on these; and what
    the variables are the same as."""
    same: list[Expression] = []
    scans = sorted(scans, key=lambda scan: repr((scan.source, scan.predicate)))

    def open_(term: PatternTerm) -> PatternTerm:
        if not isinstance(term, Constant):
            return term
        variable = Variable(f".constant {len(same)}")
        same.append(Call("SAMETERM", (variable, term)))
        return variable

    typed = [isinstance(scan.predicate, Constant) and scan.predicate.token == RDF_TYPE for scan in scans]
    return [replace(scan, subject=open_(scan.subject), object=scan.object if is_type else open_(scan.object))
            for scan, is_type in zip(scans, typed)], same


def _source(scans: Sequence[Scan], filters: Sequence[Expression], windows: Sequence[WindowSource], streams: Sequence[StreamSource],
            variables: Sequence[Variable]) -> KeptSource:
    """The relation, with names of variables and numbers of windows that follow from the pattern alone."""
    names = {variable: Variable(f"v{number}") for number, variable in enumerate(variables)}

    def renamed(term: Any) -> Any:
        return names.get(term, term) if isinstance(term, Variable) else term

    def own(source: Source) -> Source:
        match source:
            case WindowSource():
                return WindowSource(windows.index(source))
            case MergedSource(parts=parts):
                return MergedSource(tuple(map(own, parts)))     # type: ignore[arg-type]
        return source

    renumbered = tuple(Scan(own(scan.source), *map(renamed, (*scan.terms, scan.graph))) for scan in scans)
    conditions = tuple(replaced_in(condition, names) for condition in filters)
    read = tuple((streams[leaf.index].stream, leaf.key) for leaf in windows)
    digest = hashlib.sha256(repr((read, renumbered, conditions)).encode()).hexdigest()[:16]
    return KeptSource(f"k_{digest}", renumbered, conditions, read, tuple(leaf.index for leaf in windows))


def leaves(source: Source) -> tuple[WindowSource | StaticSource, ...] | None:
    """The windows and graphs that a source is the merge of; None where it is something else too."""
    match source:
        case WindowSource() | StaticSource():
            return (source,)
        case MergedSource(parts=parts):
            found = [leaves(part) for part in parts]
            return None if None in found else tuple(leaf for own in found for leaf in own or ())
    return None


def _connected(scans: Sequence[Scan]) -> bool:
    """Whether the scans share variables, one with the next: else what is kept would be a product."""
    found = [set(nodes.scan_variables(scan)) for scan in scans]
    reached, waiting = found[0], found[1:]
    while near := [one for one in waiting if one & reached]:
        reached = reached.union(*near)
        waiting = [one for one in waiting if not one & reached]
    return not waiting
