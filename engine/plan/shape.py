"""The shape of a plan: what is left of it without the constants in which queries differ.

Queries of one shape are one plan over `Given` relations, which have the constants of each at its evaluation times: to plan a statement
costs much more than to run it over few rows (docs/decisions.md, "State and incremental answers").
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, cast, get_args

from engine.ir.expressions import Call, Expression
from engine.ir.terms import XSD, Constant, Variable
from engine.plan import nodes
from engine.plan.kept import Fixed
from engine.plan.nodes import Filter, Given, Join, Plan, Project
from engine.plan.variables import plan_variables

PARAMETERS = "given"
_NODES = (nodes.Unit, nodes.Sample, nodes.Scan, nodes.Star, nodes.Values, Join, nodes.LeftJoin, nodes.Otherwise, nodes.Minus, Filter,
          nodes.Extend, nodes.Union, nodes.Aggregate, Project, nodes.Distinct, nodes.Order, nodes.Slice, nodes.Seed, nodes.Mark)
_COMPARES = frozenset(("=", "!=", "<", ">", "<=", ">=", "SAMETERM", "+", "-", "*", "/"))
_ANY = Constant('""')
_LEADS_ON = frozenset(("&&", "||", "!", "IF", "COALESCE", *_COMPARES))
_LIMITS = (100, 10_000)     # the upper bounds of LIMIT and OFFSET together under which queries are of one shape
Row = tuple[Constant | None, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Plans with equal `key` differ in these constants of comparisons, arithmetic and LIMIT only, and in the rows of inline data."""

    key: Hashable
    constants: tuple[Constant, ...]
    tables: tuple[tuple[Row, ...], ...]


def shape_of(plan: Plan, fixed: Fixed) -> Shape | None:
    """The shape of a plan; None of one that reads more than samples of kept relations, static graphs and inline data, or where the value of
    an expression does not follow from its variables alone (`fixed`)."""
    if not _serves(plan, fixed):
        return None
    constants: list[Constant] = []
    tables: list[tuple[Row, ...]] = []

    def constant(number: int, term: Constant) -> Expression:
        constants.append(term)
        return parameter(number)

    def table(number: int, values: nodes.Values) -> Plan:
        tables.append(values.rows)
        bound = tuple(tuple(None if cell is None else _ANY for cell in row) for row in values.rows)
        return replace(values, rows=bound)

    skeleton = _Rewriting(constant, table).again(plan)
    return Shape(hashlib.sha256(repr(skeleton).encode()).hexdigest(), tuple(constants), tuple(tables))


def with_given(plan: Plan, constants: Mapping[int, frozenset[int]], tables: Mapping[int, Sequence[frozenset[int]]]) -> Plan:
    """The plan with parameters in place of the constants and inline data of these numbers, whose values (of a table by column) have these
    kinds."""
    def constant(number: int, term: Constant) -> Expression:
        return parameter(number) if number in constants else term

    def table(number: int, values: nodes.Values) -> Plan:
        certain = frozenset(v for place, v in enumerate(values.variables) if all(row[place] is not None for row in values.rows))
        columns = tuple(f"p{place}" for place in range(len(values.variables)))
        name, variables = f"{PARAMETERS}{number}", values.variables
        return Given(name, variables, columns, certain, tuple(tables[number])) if number in tables else values

    return _Rewriting(constant, table, constants).again(plan)


def parameter(number: int) -> Variable:
    """The variable in the place of constant number `number`."""
    return Variable(f".given {number}")


def _serves(plan: Plan, fixed: Fixed) -> bool:
    if not isinstance(plan, _NODES):
        return False
    if isinstance(plan, (nodes.Sample, nodes.Scan)) and not isinstance(plan.source, (nodes.KeptSource, nodes.StaticSource)):
        return False
    expression = plan.condition if isinstance(plan, Filter) else plan.expression if isinstance(plan, nodes.Extend) else None
    return (expression is None or fixed(expression)) and all(_serves(below, fixed) for below in nodes.inputs(plan))


class _Rewriting:
    """Goes through a plan, in one order always; what several nodes share they share still. `constant` and `table` are asked what stands in
    the place of each constant and each Values, by its number; `kinds` are those of the parameters."""

    def __init__(self, constant: Callable[[int, Constant], Expression], table: Callable[[int, nodes.Values], Plan],
                 kinds: Mapping[int, frozenset[int]] = MappingProxyType({})) -> None:
        self._constant, self._table, self._kinds = constant, table, kinds
        self._constants = self._tables = 0
        self._done: dict[int, tuple[Plan, Plan]] = {}
        self._used: list[int] = []     # the parameters of the expression at hand

    def again(self, plan: Plan) -> Plan:
        if id(plan) not in self._done:
            self._done[id(plan)] = plan, self._made(plan)
        return self._done[id(plan)][1]

    def _made(self, plan: Plan) -> Plan:
        if isinstance(plan, nodes.Values):
            self._tables += 1
            return self._table(self._tables - 1, plan)
        below: dict[str, Any] = {own.name: self._part(getattr(plan, own.name)) for own in fields(plan)}
        match plan:
            case Filter(condition=condition):
                return self._over(plan, below, condition=self._expression(condition))
            case nodes.Extend(expression=expression):
                return self._over(plan, below, expression=self._expression(expression))
            case nodes.Slice(offset=offset, limit=int(limit)):
                most = next((most - offset for most in _LIMITS if limit + offset <= most), None)
                return self._limited(replace(plan, **below), limit, most)
        return replace(plan, **below)

    def _part(self, part: Any) -> Any:
        return self.again(part) if isinstance(part, get_args(Plan)) else part

    def _over(self, plan: Plan, below: dict[str, Any], **expression: Expression) -> Plan:
        """A node with another expression, and beneath it the parameters that this reads."""
        used, self._used = tuple(dict.fromkeys(self._used)), []
        made: Any = replace(plan, **{**below, **expression})
        if not used:
            return cast(Plan, made)
        return Project(replace(made, input=Join(below["input"], self._given(used))), tuple(sorted(plan_variables(made))))

    def _limited(self, plan: nodes.Slice, limit: int, most: int | None) -> Plan:
        """LIMIT as a parameter, if there is a bound that serves others too."""
        if most is None:
            return plan
        self._argument(Constant(f'"{limit}"^^<{XSD}integer>'))
        used, self._used = tuple(self._used), []
        return replace(plan, limit=most, own=self._given(used)) if used else plan

    def _given(self, used: Sequence[int]) -> Given:
        variables = tuple(map(parameter, used))
        kinds = tuple(self._kinds.get(number, frozenset()) for number in used)
        return Given(PARAMETERS, variables, tuple(f"p{number}" for number in used), frozenset(variables), kinds)

    def _expression(self, expression: Expression) -> Expression:
        if not isinstance(expression, Call) or expression.function not in _LEADS_ON:
            return expression
        compares = expression.function in _COMPARES
        return replace(expression, args=tuple(self._argument(argument) if compares and isinstance(argument, Constant)
                                              else self._expression(argument) for argument in expression.args))

    def _argument(self, term: Constant) -> Expression:
        number, self._constants = self._constants, self._constants + 1
        found = self._constant(number, term)
        if found != term:
            self._used.append(number)
        return found
