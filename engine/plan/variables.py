"""Which variables patterns mention and plans bind."""

from engine.ir import patterns as ir
from engine.ir.expressions import variables_of
from engine.ir.terms import Term, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan
from engine.plan.timed import TimedPlan


def variables_among(*terms: Term | None) -> tuple[Variable, ...]:
    """The distinct variables of some terms, in order."""
    return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))


def bound_variables(pattern: ir.Pattern) -> frozenset[Variable]:
    """Variables that every solution of a pattern binds."""
    match pattern:
        case ir.BGP() | ir.PathPattern():
            return ir.scope(pattern)
        case ir.Values(variables=variables, rows=rows):
            return frozenset(v for v, *cells in zip(variables, *rows) if None not in cells)
        case ir.Join(left=left, right=right):
            return bound_variables(left) | bound_variables(right)
        case ir.Union(left=left, right=right):
            return bound_variables(left) & bound_variables(right)
        case ir.LeftJoin(left=left) | ir.Minus(left=left):
            return bound_variables(left)
        case ir.GraphPattern(name=name, pattern=inner) | ir.WindowPattern(name=name, pattern=inner):
            return bound_variables(inner) | frozenset(variables_among(name))
        case ir.Group(keys=keys, pattern=inner):
            return bound_variables(inner) & frozenset(keys)
        case ir.Project(variables=variables, pattern=inner):
            return bound_variables(inner) & frozenset(variables)
    return bound_variables(pattern.pattern)


def mentioned_variables(pattern: ir.Pattern) -> frozenset[Variable]:
    """Variables anywhere in a pattern, its expressions and nested EXISTS included."""
    every = list(ir.walk(pattern))
    return frozenset().union(*map(ir.scope, every), *(variables_of(read) for inner in every for read in ir.expressions(inner)))


def plan_variables(plan: Plan) -> frozenset[Variable]:
    """Variables that a plan's relation has as columns."""
    match plan:
        case nodes.Scan(terms=terms, graph=graph, rest=rest):
            return frozenset(t for t in (*terms, *rest, graph) if isinstance(t, Variable))
        case nodes.Begun(variables=variables) | nodes.Sample(variables=variables):
            return frozenset(variables)
        case TimedPlan(columns=columns):
            return frozenset(map(Variable, columns))
        case nodes.Nodes():
            return frozenset(variables_among(plan.variable, plan.graph))
        case nodes.Reach(first=first, last=last, graph=graph):
            return frozenset(variables_among(first, last, graph))
        case nodes.Stamps(terms=terms, variable=variable, graph=graph):
            return frozenset(variables_among(*terms, variable, graph))
        case nodes.WindowTimes(name=name, variable=variable):
            return frozenset((name, variable))
        case nodes.Extend():
            return plan_variables(plan.input) | {plan.variable}
        case nodes.Values() | nodes.Given() | nodes.Project() | nodes.Seed():
            return frozenset(plan.variables)
        case nodes.Aggregate(keys=keys, aggregates=aggregates):
            return frozenset(keys) | {variable for variable, _ in aggregates}
        case nodes.Lookup(table=table):
            return plan_variables(plan.input) | {table.variable}
        case nodes.Minus():
            return plan_variables(plan.left)
        case nodes.Mark():
            return plan_variables(plan.input) | {plan.variable}
    return frozenset().union(*(plan_variables(below) for below in nodes.inputs(plan)))
