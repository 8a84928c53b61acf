"""Nodes over interval relations (engine/plan/intervals.py) as syntax trees of SQL for DuckDB.

A relation ``r3`` is a table of tokens ``a1 a2 ...`` and the points ``lo hi``; up to the point ``seen`` the steps before have read a row,
up to ``taken`` the rounds of this step. The view ``r3_round`` has the rows that the last round touched. Statements have parameters:
``$past`` is the last point of the step before, ``$until`` that of this step, ``$start`` the first of the timeline. What a document says is
a literal of the tree and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.functions.terms import integer, number_of
from engine.ir.expressions import Expression, variables_of
from engine.ir.rules import Table as Values
from engine.ir.terms import Constant, Term, Variable
from engine.plan import intervals as plan
from engine.sql.codes import write_call
from engine.sql.tree import (Value, above, aliased, ascending, at_least, at_most, below, bigint, column, equal, first_known, flag, greatest,
                             least, number, parameter, plus, running_max, same, select, text, union_all, when)
from engine.timeline import MAX, MIN, Interval

_INTEGER = integer(0)[2:]       # what follows the digits of an xsd:integer
_DIGITS = "[+-]*[0-9]+"


@dataclass(frozen=True, slots=True)
class Rows:
    """A query for rows: the columns of its variables, beside ``lo`` and ``hi``."""

    query: exp.Query
    columns: Mapping[Variable, str]


class Emitter:
    """Writes the nodes of one program; `tables` are the names of its relations' tables."""

    def __init__(self, tables: Mapping[str, str], granule: int, identity: str = "") -> None:
        self.tables = tables
        self.granule = granule
        self.identity = identity

    def derivation(self, derivation: plan.Derivation) -> exp.Query:
        """Rows ``a1 a2 ... lo hi`` for a relation."""
        rows = self.rows(derivation.input)
        cells = [self._term(term, rows.columns).as_(f"a{place}") for place, term in enumerate(derivation.terms, 1)]
        return select(*cells, "lo", "hi", source=aliased(rows.query, "f"))

    def rows(self, node: plan.Node) -> Rows:
        match node:
            case plan.Scan():
                return self._scan(node)
            case plan.Clip(input=inner):
                return self._inside(self.rows(inner), greatest(column("lo"), plus(parameter("past"), 1)),
                                    least(column("hi"), parameter("until")))
            case plan.Join(left=left, right=right):
                return self._join(self.rows(left), self.rows(right), None)
            case plan.RunOn(input=inner, guard=guard, distance=distance):
                return self._run_on(self.rows(inner), self.rows(guard) if guard is not None else None, distance)
            case plan.AntiJoin(input=inner, without=without):
                return self._without(self.rows(inner), [self.rows(scan) for scan in without])
            case plan.Shift(input=inner, distance=distance):
                return self._inside(self.rows(inner), moved("lo", distance.lo, -1, MAX), moved("hi", distance.hi, 1, MAX))
            case plan.Box():
                return self._box(node)
            case plan.LateBox():
                return self._late_box(node)
            case plan.At():
                return self._at(node)
            case plan.Recall():
                return self._recall(node)
            case plan.Place():
                return self._place(node)
            case plan.Filter(input=inner, condition=condition):
                rows = self.rows(inner)
                called = self._call("tw_test", condition, rows.columns)
                return Rows(_all(rows, called), rows.columns)
            case plan.Extend():
                return self._extend(node)
            case Values():
                return _values(node)

    def _scan(self, scan: plan.Scan) -> Rows:
        table = self.tables[scan.relation]
        found: dict[Variable, str] = {}
        tests: list[exp.Expr] = []
        for place, term in enumerate(scan.terms, 1):
            cell = column(f"a{place}")
            if isinstance(term, Constant):
                tests.append(equal(cell, text(term.token)))
            elif term in found:
                tests.append(equal(cell, column(found[term])))
            else:
                found[term] = f"a{place}"
        columns = {variable: f"v{number}" for number, variable in enumerate(found)}
        cells = [column(found[variable]).as_(name) for variable, name in columns.items()]
        first: Value = "lo"
        if scan.part == "new":
            tests += pending("seen")
            first = "lo" if scan.whole else plus("seen", 1).as_("lo")
        elif scan.part == "later":
            tests.append(above("hi", parameter("past")))
            first = greatest(column("lo"), plus(parameter("past"), 1)).as_("lo")
        elif scan.part == "round":
            table += "_round"
            tests += pending("taken")
            first = "lo" if scan.whole else plus("taken", 1).as_("lo")
        return Rows(select(*cells, first, "hi", source=table, where=tests), columns)

    def _inside(self, rows: Rows, lo: exp.Expr, hi: exp.Expr, *more: exp.Expr) -> Rows:
        """The same rows with other points, those without any left out."""
        made = select(*rows.columns.values(), lo.as_("lo"), hi.as_("hi"), source=aliased(rows.query, "f"), where=more)
        found = select(*rows.columns.values(), "lo", "hi", source=aliased(made, "g"), where=[at_most("lo", "hi")])
        return Rows(found, rows.columns)

    def _join(self, left: Rows, right: Rows, hi: exp.Expr | None) -> Rows:
        """Rows that agree on the variables of both, where both hold (or up to `hi`)."""
        columns = {v: f"v{place}" for place, v in enumerate(dict.fromkeys((*left.columns, *right.columns)))}
        cells = [column(left.columns[v], "l").as_(name) if v in left.columns else column(right.columns[v], "r").as_(name)
                 for v, name in columns.items()]
        agree = [equal(column(left.columns[v], "l"), column(right.columns[v], "r")) for v in left.columns if v in right.columns]
        if "lo" not in right.query.named_selects:       # a table of constants
            return Rows(select(*cells, column("lo", "l"), column("hi", "l"), source=aliased(left.query, "l"),
                               joined=aliased(right.query, "r"), on=agree), columns)
        met = [at_most(column("lo", "l"), column("hi", "r")), at_most(column("lo", "r"), column("hi", "l"))]
        points = [greatest(column("lo", "l"), column("lo", "r")).as_("lo"), (hi or least(column("hi", "l"), column("hi", "r"))).as_("hi")]
        query = select(*cells, *points, source=aliased(left.query, "l"), joined=aliased(right.query, "r"), on=[*agree, *met])
        return Rows(query, columns)

    def _run_on(self, rows: Rows, guard: Rows | None, distance: Interval) -> Rows:
        """Where what `distance` derives of a row touches it, the row holds as long as the guard does."""
        lo: exp.Expr = column("lo") if guard is None else greatest(column("lo", "l"), column("lo", "r"))
        hi: exp.Expr = column("hi") if guard is None else least(column("hi", "l"), column("hi", "r"))
        end: exp.Expr = number(MAX) if guard is None else column("hi", "r")
        again = at_most(moved(lo, distance.lo, -1, MAX), plus(hi, 1))
        if guard is not None:
            return self._join(rows, guard, when(again, end, hi))
        query = select(*rows.columns.values(), "lo", when(again, end, hi).as_("hi"), source=aliased(rows.query, "f"))
        return Rows(query, rows.columns)

    def _without(self, rows: Rows, without: Sequence[Rows]) -> Rows:
        """The gaps that are left of each row: before each row that is taken away, and after the last."""
        cells = list(rows.columns.values())
        pieces: list[exp.Query] = [select(*cells, "lo", plus("hi", 1).as_("first"), bigint(exp.null()).as_("last"),
                                          source=aliased(rows.query, "f"))]
        for other in without:
            agree = [equal(column(rows.columns[v], "f"), column(name, "n")) for v, name in other.columns.items()]
            met = [at_most(column("lo", "n"), column("hi", "f")), at_least(column("hi", "n"), column("lo", "f"))]
            pieces.append(select(*(column(cell, "f") for cell in cells), column("lo", "f"), column("lo", "n").as_("first"),
                                 column("hi", "n").as_("last"), source=aliased(rows.query, "f"), joined=aliased(other.query, "n"),
                                 on=[*agree, *met]))
        together = union_all(pieces)
        before = running_max("last", [*cells, "lo"], [ascending("first")])
        gaps = select(*cells, greatest(column("lo"), first_known(plus(before, 1), column("lo"))).as_("begin"),
                      plus("first", -1).as_("hi"), source=aliased(together, "p"))
        left = select(*cells, column("begin").as_("lo"), "hi", source=aliased(gaps, "g"), where=[at_most("begin", "hi")])
        return Rows(left, rows.columns)

    def _box(self, box: plan.Box) -> Rows:
        rows = self.rows(box.input)
        if not box.from_start:
            return self._inside(rows, *eroded(box.distance))
        rows = _from_start(rows)
        lo, hi, reached = eroded(box.distance)
        return self._inside(rows, greatest(lo, parameter("start")), hi, reached)

    def _late_box(self, box: plan.LateBox) -> Rows:
        """For each point ``known`` at which something became known late: the box over what is known then, from that point on."""
        rows, late = self.rows(box.input), self.rows(box.late)
        cells = list(rows.columns.values())
        begin = exp.Mul(this=self._instant(box.instant, late.columns), expression=number(self.granule))
        named = select(*(column(late.columns[v]).as_(name) for v, name in rows.columns.items()), column("lo").as_("known"),
                       begin.as_("lo"), plus(begin.copy(), self.granule - 1).as_("hi"), source=aliased(late.query, "l"))
        there = at_least("lo", parameter("start"))
        told = select(*cells, "known", "lo", "hi", source=aliased(named, "l"), where=[there])
        changes = select(*cells, "known", source=aliased(told, "t")).distinct(copy=False)

        def known(query: exp.Query, *more: exp.Expr) -> exp.Query:
            return select(*(column(cell, "c") for cell in cells), column("known", "c"), column("lo", "r"), column("hi", "r"),
                          source=aliased(changes, "c"), joined=aliased(query, "r"), on=[*same(cells, "c", "r"), *more])

        pieces = union_all([known(rows.query), known(told.copy(), at_most(column("known", "r"), column("known", "c")))])
        columns = {**rows.columns, Variable(".known"): "known"}
        whole = _from_start(Rows(coalesced(pieces, [*cells, "known"]), columns))
        lo, hi, reached = eroded(box.distance)
        held = self._inside(whole, greatest(lo, parameter("start"), column("known")), hi, reached)
        return Rows(select(*cells, "lo", "hi", source=aliased(held.query, "h")), rows.columns)

    def _at(self, node: plan.At) -> Rows:
        """Rows with instants: of a constant the row that has it; of a variable one row for each of the granules, or punctual rows."""
        rows = self.rows(node.input)
        cells = list(rows.columns.values())
        inner = aliased(rows.query, "f")
        if isinstance(node.instant, Constant):
            value = number_of(node.instant.token)
            if value is None:
                return Rows(select(*cells, "lo", "hi", source=inner, where=[flag(False)]), rows.columns)
            length = self.granule or 2
            lo, hi = value * length, (value + 1 + node.window) * length - 1 if self.granule else value * length
            held = [at_most("lo", number(lo)), at_least("hi", number(lo))]
            return Rows(select(*cells, number(lo).as_("lo"), number(hi).as_("hi"), source=inner, where=held), rows.columns)
        if not self.granule:
            point = when(equal("lo", "hi"), column("lo"), exp.func("error", text("@ of a fact with a duration has endless instants")))
            even = equal(exp.paren(exp.BitwiseAnd(this=column("lo"), expression=number(1))), number(0))
            made = select(*cells, _divided("lo", 2).as_("k"), bigint(point).as_("lo"), "hi", source=inner, where=[even])
            return self._bound(Rows(made, rows.columns), node.instant)
        listed = exp.Explode(this=exp.GenerateSeries(start=_divided("lo", self.granule), end=_divided(plus("hi", 1), self.granule),
                                                     is_end_exclusive=True))
        spread = select(*cells, listed.as_("k"), source=inner)
        lo_at = exp.Mul(this=column("k"), expression=number(self.granule))
        made = select(*cells, "k", lo_at.as_("lo"), plus(lo_at.copy(), (1 + node.window) * self.granule - 1).as_("hi"),
                      source=aliased(spread, "k"))
        return self._bound(Rows(made, rows.columns), node.instant)

    def _bound(self, rows: Rows, instant: Variable) -> Rows:
        """Rows with a column ``k``: the variable is bound to its token, or tested."""
        token = exp.DPipe(this=exp.DPipe(this=text('"'), expression=column("k")), expression=text(_INTEGER))
        if instant in rows.columns:
            return Rows(_all(rows, equal(rows.columns[instant], token)), rows.columns)
        columns = {**rows.columns, instant: f"v{len(rows.columns)}"}
        query = select(*rows.columns.values(), token.as_(columns[instant]), "lo", "hi", source=aliased(rows.query, "b"))
        return Rows(query, columns)

    def _recall(self, node: plan.Recall) -> Rows:
        rows = self.rows(node.input)
        k = self._instant(node.instant, rows.columns)
        begin = exp.Mul(this=k, expression=number(self.granule))
        far = number(MAX) if node.distance.hi == MAX else plus(begin, node.distance.hi + self.granule - 1)
        there = at_least(begin.copy(), parameter("start"))
        return self._inside(rows, greatest(column("lo"), plus(begin.copy(), node.distance.lo)), least(column("hi"), far), there)

    def _place(self, node: plan.Place) -> Rows:
        rows = self.rows(node.input)
        cells = list(rows.columns.values())
        # A row that began in a step before has placed its atom then.
        begun = above(greatest(column("lo"), parameter("start")), parameter("past"))
        named = select(*cells, "lo", "hi", self._instant(node.instant, rows.columns).as_("k"), source=aliased(rows.query, "f"),
                       where=[begun])
        lo = exp.Mul(this=column("k"), expression=number(self.granule))
        if node.late:
            kept: exp.Expr = number(MAX) if node.keep == MAX else greatest(column("lo"), plus(lo, node.keep + self.granule - 1))
            query = select(*cells, "lo", kept.as_("hi"), source=aliased(named, "k"), where=[below(lo.copy(), "lo")])
            return Rows(query, rows.columns)
        query = select(*cells, lo.as_("lo"), plus(lo.copy(), self.granule - 1).as_("hi"), source=aliased(named, "k"),
                       where=[at_least(lo.copy(), "lo")])
        return Rows(query, rows.columns)

    def _instant(self, term: Term, columns: Mapping[Variable, str]) -> exp.Expr:
        """The number of a granule; NULL where a token is none."""
        if isinstance(term, Constant):
            value = number_of(term.token)
            return bigint(exp.null()) if value is None else number(value)
        lexical = exp.SplitPart(this=column(columns[term]), delimiter=text('"'), part_index=number(2))
        digits = exp.RegexpFullMatch(this=lexical, expression=text(_DIGITS))
        return exp.Case(ifs=[exp.If(this=digits, true=exp.TryCast(this=lexical.copy(), to=exp.DataType.build(exp.DType.BIGINT)))])

    def _extend(self, node: plan.Extend) -> Rows:
        rows = self.rows(node.input)
        value = self._call("tw_eval", node.expression, rows.columns)
        if node.variable in rows.columns:
            return Rows(_all(rows, equal(rows.columns[node.variable], value)), rows.columns)
        name = f"v{len(rows.columns)}"
        made = select(*rows.columns.values(), value.as_(name), "lo", "hi", source=aliased(rows.query, "f"))
        columns = {**rows.columns, node.variable: name}
        there = exp.Not(this=exp.Is(this=column(name), expression=exp.null()))
        return Rows(select(*columns.values(), "lo", "hi", source=aliased(made, "g"), where=[there]), columns)

    def _call(self, function: str, expression: Expression, columns: Mapping[Variable, str]) -> exp.Expr:
        """A call of a Python function (engine/worker/functions.py) over the variables of an expression."""
        names = sorted(v for v in variables_of(expression) if v in columns)
        code = write_call(expression, [v.name for v in names], [], self.identity, 0)
        listed = exp.Array(expressions=[column(columns[v]) for v in names], value_constructor=False)
        tokens = exp.cast(listed, "VARCHAR[]", dialect="duckdb")
        return exp.Anonymous(this=function, expressions=[text(code), bigint(number(0)), tokens])

    def _term(self, term: Term, columns: Mapping[Variable, str]) -> exp.Expr:
        return text(term.token) if isinstance(term, Constant) else column(columns[term])


def _from_start(rows: Rows) -> Rows:
    """Rows of the first point of the timeline hold before it too."""
    first = when(at_most("lo", parameter("start")), number(MIN), column("lo"))
    return Rows(select(*rows.columns.values(), first.as_("lo"), "hi", source=aliased(rows.query, "s")), rows.columns)


def coalesced(rows: exp.Query, keys: Sequence[str]) -> exp.Query:
    """Rows of the same keys that overlap or touch as one."""
    last = exp.Window(this=exp.Max(this=column("hi")), partition_by=[column(key) for key in keys]).as_("last")
    ordered = select(*keys, "lo", running_max("hi", keys, [ascending("lo")]).as_("before"), last, source=aliased(rows, "p"))
    begins = exp.Or(this=exp.Is(this=column("before"), expression=exp.null()), expression=above("lo", plus("before", 1)))
    starts = select(*keys, "lo", "before", "last", source=aliased(ordered, "o"), where=[begins])
    # A run ends where the rows before the next run end; the last one at the greatest end of all rows.
    following = exp.Window(this=exp.Lead(this=column("before")), partition_by=[column(key) for key in keys],
                           order=exp.Order(expressions=[ascending("lo")]))
    return select(*keys, "lo", first_known(following, column("last")).as_("hi"), source=aliased(starts, "s"))


def pending(mark: str) -> list[exp.Expr]:
    """That a row has points behind a mark, the first of them in the step."""
    return [below(mark, "hi"), below(mark, parameter("until"))]


def _all(rows: Rows, condition: exp.Expr) -> exp.Select:
    return select(*rows.columns.values(), "lo", "hi", source=aliased(rows.query, "f"), where=[condition])


def _values(table: Values) -> Rows:
    """A table of constants: no points, it always holds."""
    names = [f"v{place}" for place in range(len(table.variables))]
    rows = [select(*(text(cell.token).as_(name) for cell, name in zip(row, names)), *([] if names else [number(1).as_("one")]))
            for row in table.rows]
    empty = select(*(exp.cast(exp.null(), "VARCHAR").as_(name) for name in names), *([] if names else [number(1).as_("one")]),
                   where=[flag(False)])
    return Rows(union_all(rows) if rows else empty, dict(zip(table.variables, names)))


def moved(end: Value, distance: int, towards: int, infinite: int, even: bool = False) -> exp.Expr:
    """A point moved on by an encoded distance; an infinite one stays. Ends that are both open (in an erosion, `even`: a closed and an open
    one) are a point nearer or further: timeline.diamond_minus and box_minus."""
    point = column(end) if isinstance(end, str) else end
    if distance == infinite:
        return number(MAX) if end == "hi" else when(below(point, number(MIN + 1)), point.copy(), number(MAX))
    further = plus(point, distance)
    if distance & 1:
        odd = exp.BitwiseAnd(this=point.copy() if not even else exp.paren(plus(point, 1)), expression=number(1))
        further = (exp.Sub if towards < 0 else exp.Add)(this=further, expression=exp.paren(odd))
    inside = exp.And(this=above(point, number(MIN)), expression=below(point, number(MAX)))
    return when(inside, least(further, number(MAX)), point.copy())


def eroded(distance: Interval) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """The ends of what is left of a coalesced row, and of which rows something is: timeline.box_minus."""
    reached = equal("lo", number(MIN)) if distance.hi == MAX else flag(True)
    return moved("lo", distance.hi, 1, MAX, even=True), moved("hi", distance.lo, -1, MAX, even=True), reached


def _divided(value: Value, length: int) -> exp.Expr:
    inner = column(value) if isinstance(value, str) else exp.paren(value)
    return exp.IntDiv(this=inner, expression=number(length))
