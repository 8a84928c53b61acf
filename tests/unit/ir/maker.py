"""Random IR that a text can say, for property tests of the printer: only what the grammar makes, in its one spelling."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from hypothesis import strategies as st

from engine.ir.expressions import Aggregate, Call, Exists, Expression, conj
from engine.ir.patterns import (BGP, Alternative, Distinct, Extend, Filter, GraphPattern, Group, Inverse, Join, LeftJoin, Link,
                                Minus, NegatedSet, OrderBy, Path, PathPattern, Pattern, Project, Repeat, Sequence, Slice,
                                TriplePattern, Union, Values, WindowPattern, scope)
from engine.ir.statement import (AllWindow, Ask, Construct, Describe, GraphSource, NowWindow, Query, Report, RuleSource, Select,
                                 Statement, StreamSource, TimeWindow, TupleWindow, Window)
from engine.ir.terms import XSD, Constant, Variable
from grammar.terms import literal

T = TypeVar("T")

_VARIABLES = [Variable(name) for name in ("a", "b", "x", "y1", "é", "long_name")]
_IRIS = ["http://ex.org/a", "http://ex.org/b#c", "rel", "urn:x:%41", "http://ex.org/ü"]
_DURATIONS = st.sampled_from([1, 500, 1_000, 1_500, 10_000, 60_000, 3_600_000, 86_400_000])
_TYPED = [("1", "integer"), ("-07", "integer"), ("+3", "integer"), ("1.50", "decimal"), ("-.5", "decimal"), ("1e6", "double"),
          ("-1.0E-2", "double"), ("true", "boolean"), ("false", "boolean"), ("", "integer"), ("1 ", "integer"), ("x", "dateTime")]
_FUNCTIONS = [("STR", 1), ("REGEX", 3), ("IF", 3), ("COALESCE", 2), ("CONCAT", 0), ("BNODE", 0), ("NOW", 0), ("ISIRI", 1),
              ("SUBSTR", 2), ("<http://ex.org/f>", 2), (f"<{XSD}double>", 1)]
_NAMES = ["q", "hot-1", "http://ex.org/q", "select", "a_b"]

Orders = tuple[tuple[Expression, bool], ...]


class Maker:
    """Draws IR; each statement has a maker of its own, since blank nodes and aggregates are numbered through it."""

    def __init__(self, draw: st.DrawFn, windows: tuple[str, ...] = ()) -> None:
        self._draw = draw
        self._windows = windows
        self._labels = count()

    def _pick(self, *choices: Callable[[], Any]) -> Any:
        return choices[self._draw(st.integers(0, len(choices) - 1))]()

    def _some(self, make: Callable[[], T], least: int = 0, most: int = 3) -> list[T]:
        return [make() for _ in range(self._draw(st.integers(least, most)))]

    def variable(self) -> Variable:
        return self._draw(st.sampled_from(_VARIABLES))

    def iri(self) -> Constant:
        return Constant(f"<{self._draw(st.sampled_from(_IRIS))}>")

    def literal(self) -> Constant:
        text = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
        lexical, datatype = self._draw(st.sampled_from(_TYPED))
        return self._pick(lambda: literal(self._draw(text)), lambda: literal(self._draw(text), None, "en-gb"),
                          lambda: literal(lexical, XSD + datatype), lambda: literal(self._draw(text), "http://ex.org/type"))

    def label(self) -> Variable:
        return Variable(f"_:n{next(self._labels)}")

    # ------------------------------------------------------------------ patterns

    def triple(self, labels: list[Variable]) -> TriplePattern:
        ends: list[Callable[[], Any]] = [self.variable, self.iri, self.literal, lambda: self._draw(st.sampled_from(labels))]
        return TriplePattern(self._pick(*ends), self._pick(self.variable, self.iri), self._pick(*ends))

    def triples(self, least: int = 1) -> tuple[TriplePattern, ...]:
        labels = [self.label(), self.label()]
        return tuple(self._some(lambda: self.triple(labels), least))

    def path(self, depth: int, top: bool = False) -> Path:
        def repeat() -> Path:
            return Repeat(self.path(depth - 1), *self._draw(st.sampled_from([(0, 1), (0, None), (1, None)])))

        def negated() -> Path:
            return NegatedSet(tuple(self._some(self.iri)), tuple(self._some(self.iri)))

        def alternative() -> Path:
            return Alternative(self.path(depth - 1), self.path(depth - 1))

        def sequence() -> Path:
            return Sequence(self.path(depth - 1), self.path(depth - 1))

        if depth <= 0:
            return negated() if top else Link(self.iri())
        inner = () if top else (lambda: Link(self.iri()), lambda: Inverse(self.path(depth - 1)), sequence)
        return self._pick(repeat, negated, alternative, *inner)

    def pattern(self, depth: int) -> Pattern:
        if depth <= 0:
            return self._pick(lambda: BGP(self.triples()), self.values,
                              lambda: PathPattern(self.variable(), self.path(2, True), self.iri()))
        inner = depth - 1
        return self._pick(
            lambda: self.pattern(0), lambda: self.pattern(0), lambda: BGP(()),
            lambda: self._join(self.pattern(inner), self.pattern(inner)), lambda: Union(self.pattern(inner), self.pattern(inner)),
            lambda: Minus(self.pattern(inner), self.pattern(inner)), lambda: Filter(self.condition(inner), self.pattern(inner)),
            lambda: LeftJoin(self.pattern(inner), self.pattern(inner), self._pick(lambda: None, lambda: self.condition(inner))),
            lambda: self._extend(self.pattern(inner), lambda: self.expression(inner)),
            lambda: GraphPattern(self._pick(self.variable, self.iri), self.pattern(inner)),
            lambda: WindowPattern(self._window_name(), self.pattern(inner)), lambda: self.level(inner, True))

    def values(self) -> Values:
        variables = tuple(dict.fromkeys(self._some(self.variable, 0)))
        return Values(variables, tuple(self._some(
            lambda: tuple(self._pick(self.iri, self.literal, lambda: None) for _ in variables))))

    def _window_name(self) -> Variable | Constant:
        if not self._windows or self._draw(st.booleans()):
            return self.variable()
        return Constant(f"<{self._draw(st.sampled_from(self._windows))}>")

    @staticmethod
    def _join(left: Pattern, right: Pattern) -> Pattern:
        """Not with the empty pattern, which a text cannot say."""
        return right if left == BGP(()) else left if right == BGP(()) else Join(left, right)

    def _extend(self, pattern: Pattern, make: Callable[[], Expression]) -> Pattern:
        free = [variable for variable in _VARIABLES if variable not in scope(pattern)]
        return Extend(pattern, self._draw(st.sampled_from(free)), make()) if free else pattern

    # ------------------------------------------------------------------ expressions

    def expression(self, depth: int) -> Expression:
        if depth <= 0:
            return self._pick(self.variable, self.iri, self.literal)

        def binary() -> Expression:
            operator = self._draw(st.sampled_from(["||", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]))
            return Call(operator, (self.expression(depth - 1), self.expression(depth - 1)))

        def call() -> Expression:
            name, arity = self._draw(st.sampled_from(_FUNCTIONS))
            return Call(name, tuple(self.expression(depth - 1) for _ in range(arity)))

        def membership() -> Expression:
            args = self._some(lambda: self.expression(depth - 1), 1)
            return Call(self._draw(st.sampled_from(["IN", "NOT IN"])), tuple(args))

        return self._pick(
            binary, call, membership, lambda: self.expression(0),
            lambda: conj(self.expression(depth - 1), self.expression(depth - 1)),
            lambda: Call(self._draw(st.sampled_from(["!", "U+", "U-"])), (self.expression(depth - 1),)),
            lambda: Exists(self.pattern(depth - 1), self._draw(st.booleans())))

    def condition(self, depth: int) -> Expression:
        """Of a FILTER: in its one spelling."""
        return conj(self.expression(depth))

    # ------------------------------------------------------------------ levels

    def level(self, depth: int, projects: bool) -> Pattern:
        """A SELECT (`projects`), or the pattern of another form with its modifiers."""
        grouped = self._draw(st.booleans())
        pattern, columns, orders = self._grouped(depth, projects) if grouped else self._plain(depth, projects)
        result = OrderBy(pattern, orders) if orders else pattern
        if projects:
            result = Project(result, tuple(columns or [self.variable()]))
            result = Distinct(result) if self._draw(st.booleans()) else result
        if self._draw(st.booleans()):
            result = Slice(result, self._draw(st.integers(0, 5)), self._draw(st.none() | st.integers(0, 9)))
        return result

    def _orders(self, make: Callable[[], Expression]) -> Orders:
        return tuple(self._some(lambda: (make(), self._draw(st.booleans())), 0, 2))

    def _plain(self, depth: int, projects: bool) -> tuple[Pattern, list[Variable], Orders]:
        pattern = self.pattern(depth)
        columns = list(dict.fromkeys(self._some(self.variable)))
        return pattern, columns, self._orders(lambda: self.expression(1))

    def _grouped(self, depth: int, projects: bool) -> tuple[Pattern, list[Variable], Orders]:
        pattern = self.pattern(depth)
        keys: list[Variable] = []
        for index in range(self._draw(st.integers(0, 2))):
            if self._draw(st.booleans()):
                keys.append(self.variable())
            else:
                variable = Variable(f".key{index}")
                pattern = Extend(pattern, variable, Call("STR", (self.variable(),)))
                keys.append(variable)
            if len(set(keys)) < len(keys):
                keys.pop()
                break
        known = [key for key in keys if key.visible]
        where_scope = scope(pattern)
        aggregates: dict[Aggregate, Variable] = {}

        def atom() -> Expression:
            if known and self._draw(st.booleans()):
                return self._draw(st.sampled_from(known))
            return aggregates.setdefault(self.aggregate(), Variable(f".agg{len(aggregates)}"))

        columns = list(known)
        extends: list[tuple[Variable, Expression]] = []
        free = [variable for variable in _VARIABLES if variable not in where_scope and variable not in keys]
        for variable in free[:self._draw(st.integers(0, 2))] if projects else []:
            extends.append((variable, Call("+", (atom(), atom()))))
            columns.append(variable)
        if projects and not columns:
            extends.append((Variable("only"), atom()))
            columns.append(Variable("only"))
        having = Call(">", (atom(), self.literal())) if self._draw(st.booleans()) else None
        orders = self._orders(atom)
        if not keys and not aggregates:
            having = Call(">", (aggregates.setdefault(self.aggregate(), Variable(".agg0")), self.literal()))
        result: Pattern = Group(pattern, tuple(keys), tuple((v, a) for a, v in aggregates.items()), not keys)
        result = Filter(having, result) if having is not None else result
        result = self._join(result, self.values()) if self._draw(st.booleans()) else result
        for variable, expression in extends:
            result = Extend(result, variable, expression)
        return result, columns, orders

    def aggregate(self) -> Aggregate:
        function = self._draw(st.sampled_from(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"]))
        separator = self._draw(st.sampled_from([" ", ",", '"\n'])) if function == "GROUP_CONCAT" else " "
        expression = None if function == "COUNT" and self._draw(st.booleans()) else self.expression(1)
        return Aggregate(function, expression, self._draw(st.booleans()), separator)

    # ------------------------------------------------------------------ statements

    def query(self, depth: int) -> Query:
        def select() -> Query:
            pattern = self.level(depth, True)
            inner = pattern
            while not isinstance(inner, Project):
                inner = inner.pattern  # type: ignore[union-attr]
            return Select(pattern, inner.variables)

        def describe() -> Query:
            terms = self._some(self.variable, 1) + self._some(self.iri)
            return Describe(tuple(dict.fromkeys(terms)), self.level(depth, False))

        return self._pick(select, lambda: Ask(self.level(depth, False)), describe,
                          lambda: Construct(self.triples(0), self.level(depth, False)))


def _windows() -> st.SearchStrategy[Window]:
    times = st.builds(TimeWindow, _DURATIONS, _DURATIONS, st.just(0) | _DURATIONS)
    tuples = st.builds(TupleWindow, st.integers(1, 10_000), st.sampled_from(["triples", "items"]))
    return times | tuples | st.just(NowWindow()) | st.just(AllWindow())


@st.composite
def statements(draw: st.DrawFn, depth: int = 3) -> Statement:
    """Statements of every form and dialect, without text and spans."""
    iris = st.sampled_from(_IRIS)
    windows = draw(st.lists(_windows(), max_size=3))
    names = [f"w{index}" if draw(st.booleans()) else None for index in range(len(windows))]
    streams = tuple(StreamSource(draw(iris), window, name) for window, name in zip(windows, names, strict=True))
    named = tuple(name for name in names if name is not None)
    registered = draw(st.booleans())
    report: Report = draw(st.sampled_from(("close", "change", "full"))) if registered else "close"
    return Statement(
        Maker(draw, named).query(depth), "",
        name=draw(st.none() | st.sampled_from(_NAMES)) if registered else None,
        kind=draw(st.sampled_from(["query", "stream"])) if registered else "query",
        registered=registered,
        dialect="rspql" if named else "csparql" if registered or streams else "sparql",
        output=draw(st.sampled_from(["rstream", "istream", "dstream"])),
        report=report,
        compute_every_ms=draw(st.none() | _DURATIONS) if registered and report != "change" else None,
        start_at_ms=draw(st.just(0) | st.integers(-10 ** 13, 10 ** 13)) if registered else 0,
        streams=streams,
        graphs=tuple(draw(st.lists(st.builds(GraphSource, iris, st.booleans()), max_size=2))),
        rules=tuple(draw(st.lists(st.builds(RuleSource, st.sampled_from(["rdfs", "http://ex.org/r"])), max_size=2))),
        reasoning_graphs=tuple(draw(st.lists(st.builds(GraphSource, iris), max_size=1))))
