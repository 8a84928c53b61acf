"""What expressions read and depend on: how columns are spelled in calls of the Python functions of worker/functions.py, and which
variables of a plan have typed companions (columns ``_k _n _m``): those that comparisons, arithmetic and aggregates read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.functions.library import FUNCTIONS
from engine.functions.typed import Kinds
from engine.ir.expressions import Call, Expression, is_iri, walk
from engine.ir.terms import Variable
from engine.plan import nodes
from engine.plan.nodes import Plan, inputs
from engine.sql.functions import arithmetic, comparisons
from engine.sql.functions.values import Typed

VOLATILE = frozenset(name for name, function in FUNCTIONS.items() if function.volatile)
ROWWISE = frozenset(name for name, function in FUNCTIONS.items() if function.rowwise)


@dataclass(frozen=True, slots=True)
class Columns:
    """How a relation's variables are spelled: `token` gives the column (None: there is none) of a token, or of a truth value for
    those in `booleans`; `typed` ones have companions, of these kinds. `at` is the column of T; `row` are the variables that tell rows
    apart. The values of the expressions in `steps` stand in columns of their own."""

    token: Callable[[Variable], str | None]
    typed: Mapping[Variable, Kinds]
    booleans: frozenset[Variable]
    at: str | None
    row: tuple[Variable, ...]
    steps: Mapping[Expression, Typed] = field(default_factory=dict)


def functions_in(expression: Expression) -> frozenset[str]:
    return frozenset(part.function for part in walk(expression) if isinstance(part, Call))


def is_volatile(expression: Expression) -> bool:
    """Whether the value depends on the evaluation time."""
    return bool(functions_in(expression) & VOLATILE)


def is_rowwise(expression: Expression) -> bool:
    """Whether the value depends on the whole row: RAND, UUID, BNODE."""
    return bool(functions_in(expression) & ROWWISE)


TAKES_TYPES = frozenset({*comparisons.OPERATORS, *arithmetic.BINARY, *arithmetic.UNARY, *arithmetic.FIELDS, "ISNUMERIC", "IN", "NOT IN"})
"""Functions whose arguments are read by their typed companions."""
GATHERS_TYPES = frozenset({"SUM", "AVG", "MIN", "MAX"})


def comparable_variables(expression: Expression) -> frozenset[Variable]:
    """Variables that are direct arguments of such functions: the ones whose typed columns a scan should carry."""
    match expression:
        case Call(function="=" | "!=", args=(left, right)) if is_iri(left) or is_iri(right):
            return frozenset()
        case Call(function=function, args=args):
            direct = frozenset(a for a in args if isinstance(a, Variable)) if function in TAKES_TYPES else frozenset()
            return direct.union(*map(comparable_variables, args))
    return frozenset()


def typed_variables(plan: Plan) -> frozenset[Variable]:
    """The variables of a plan that should have typed companions where they are bound."""
    found: frozenset[Variable] = frozenset()
    while True:
        more = found | _wanted(plan, found)
        if more == found:
            return found
        found = more


def _wanted(plan: Plan, known: frozenset[Variable]) -> frozenset[Variable]:
    own: frozenset[Variable] = frozenset()
    match plan:
        case nodes.Filter(condition=condition):
            own = comparable_variables(condition)
        case nodes.Extend(variable=variable, expression=expression):
            own = comparable_variables(expression)
            own |= {expression} if isinstance(expression, Variable) and variable in known else set()
        case nodes.Aggregate(aggregates=aggregates):
            own = frozenset(call.expression for _, call in aggregates
                            if call.function in GATHERS_TYPES and isinstance(call.expression, Variable))
        case nodes.Order(conditions=conditions):
            own = frozenset(condition for condition, _ in conditions if isinstance(condition, Variable))
    return own.union(*(_wanted(below, known) for below in inputs(plan)))
