"""What a document says stands in literals of the written statements and nowhere else: the text parses back to the same tree."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from engine.functions.terms import string
from engine.ir.expressions import Call
from engine.ir.rules import Assign, At, Atom, BoxMinus, DiamondMinus, Negation, Rule, RuleSet, Table, Test as Condition, WindowFormula
from engine.ir.terms import Constant, Variable
from engine.sql.intervals import eroded, moved
from engine.sql.steps import Statements
from engine.sql.tree import number, select, union_all, written
from engine.timeline import MAX, MIN, Interval, box_minus, diamond_minus, operator
from tests.interval_runs import planned

X, Y, T = Variable("x"), Variable("y"), Variable("t")
NASTY = ["it's", '"; DROP TABLE r1; --', "\\' OR 1=1", "$until", "${x}", "é\n\t☃", "'||chr(0)||'", "/* */"]


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("granularity", [0, 1000])
def test_statements_parse_back(value: str, granularity: int) -> None:
    c = Constant(string(value))
    p = Atom(value, (X, c))
    rules = [Rule(Atom("q", (X, c)), (DiamondMinus(operator(0, 1000), p), BoxMinus(operator(1000, 2000), p), Table((Y,), ((c,), (c,))),
                                      Condition(Call("=", (X, c))), Assign(Y, Call("STR", (c,))))),
             Rule(Atom("q", (X, c)), (DiamondMinus(operator(0, 1000), Atom("q", (X, c))), Negation(Atom("n", (X,)))), name=value)]
    if granularity:
        rules.append(Rule(At(T, Atom("u", (X, c))), (WindowFormula("time", 3, At(T, p)), WindowFormula("tuple", 3, At(T, p)))))
    statements = Statements(planned(RuleSet(value, tuple(rules), granularity_ms=granularity)))
    for relation in statements.program.relations:
        trees = [statements.create(relation), *statements.replace(relation),
                 statements.changes(relation), statements.evict(relation), statements.begin(relation),
                 statements.settle(relation, True), statements.settle(relation, False), statements.size(relation),
                 *(statements.pieces(relation, [d], True, same_terms) for d in relation.derivations for same_terms in (False, True)),
                 *(statements.pieces(relation, [], True, same_terms) for same_terms in (False, True))]
        for tree in trees:
            [parsed] = sqlglot.parse(written(tree), dialect="duckdb")
            assert parsed is not None and written(parsed) == written(tree)
            literals = [[str(found.this) for found in made.find_all(exp.Literal)] for made in (tree, parsed)]
            assert sorted(literals[0]) == sorted(literals[1])
            assert not {str(found.this) for found in parsed.find_all(exp.Identifier)} & {value}


def test_points_move_as_the_timeline_says() -> None:
    """Shift and box in SQL and in engine/timeline.py, for all kinds of ends."""
    points = [MIN, -3, -2, 0, 1, 2, 7, MAX]
    pairs = [(lo, hi) for lo in points for hi in points if lo <= hi and hi > MIN]
    given = union_all([select(number(lo).as_("lo"), number(hi).as_("hi")) for lo, hi in pairs])
    for distance in (operator(0, 0), operator(0, 2), operator(1, 3, closed_start=False), operator(1, 3, closed_end=False),
                     Interval(1, MAX)):
        ends = [moved("lo", distance.lo, -1, MAX), moved("hi", distance.hi, 1, MAX), *eroded(distance)]
        query = select("lo", "hi", *(end.as_(f"e{place}") for place, end in enumerate(ends))).from_(given.copy().subquery("f"))
        for lo, hi, first, last, *left in duckdb.connect().execute(written(query)).fetchall():
            shifted, boxed = diamond_minus(Interval(lo, hi), distance), box_minus(Interval(lo, hi), distance)
            assert (first, last) == (shifted.lo, shifted.hi), (lo, hi, distance)
            assert (Interval(*left[:2]) if left[2] and left[0] <= left[1] else None) == boxed, (lo, hi, distance)
