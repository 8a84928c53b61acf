"""The tables of functions are complete, say each function once, say what the lowering does, and are what docs/functions.md shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.functions.aggregates import _AGGREGATES
from engine.functions.library import FUNCTIONS
from engine.functions.typed import ANY_KIND
from engine.ir.builtins import BUILTINS
from engine.ir.expressions import Call, Expression
from engine.ir.terms import Variable
from engine.ir.windows import TIME_FUNCTIONS
from engine.sql.calls import Columns
from engine.sql.dialect import DIALECTS, SPARK, Dialect
from tests.functions_page import AGGREGATES, OF_PLANS, PAGE, form, page, short
from engine.sql.functions.tables import LOWERED, REFUSED, SIMPLE, TABLES, UDF
from engine.sql.lower import Lowering
from tests.unit.spark.samples import A, B, expressions

FORMS = {"&&", "||", "!", "BOUND", "IF", "COALESCE", "IN", "NOT IN", "EXISTS", "NOT EXISTS"}
SPELLED = Columns(lambda v: v.name, {A: ANY_KIND, B: ANY_KIND}, frozenset(), "tick", (A, B))


def test_every_function_stands_in_exactly_one_table() -> None:
    listed = [name for table in TABLES.values() for name in table]
    assert len(listed) == len(set(listed))
    assert set(listed) - set(REFUSED) == set(FUNCTIONS) | set(_AGGREGATES) | set(TIME_FUNCTIONS) | FORMS


def test_every_cast_is_on_the_page() -> None:
    """Those that the tables do not have, for they are no part of SPARQL, too."""
    casts = [iri for iri, builtin in BUILTINS.items() if builtin.group == "casts"]
    assert len(casts) > 30 and [iri for iri in casts if not any(f"`{short(iri)}{end}" in page() for end in "(`")] == []


def _calls_in(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for arg in expression.args:
            yield from _calls_in(arg)


@pytest.mark.parametrize("name", sorted({*SIMPLE, *LOWERED} - set(AGGREGATES) - set(OF_PLANS)))
def test_what_the_tables_call_sql_is_sql(name: str) -> None:
    """In some place on Spark where no call may hide in a CASE: as a condition, compared, or as a value."""
    samples = [call for expression in expressions() for call in _calls_in(expression) if call.function == name]
    texts = []
    for call in samples:
        compared = Call("<", (call, B))
        texts += [Lowering(SPARK, "q", 0).condition(call, SPELLED), Lowering(SPARK, "q", 0).condition(compared, SPELLED),
                  Lowering(SPARK, "q", 0).value(call, SPELLED)]
    assert any("tw_" not in text for text in texts)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
@pytest.mark.parametrize("name", [n for n in UDF if n not in ("NOW", "RAND", "UUID", "STRUUID")])
def test_a_udf_is_a_call(name: str, dialect: Dialect) -> None:
    variables = tuple(map(Variable, "abc"))[:max(1, FUNCTIONS[name].least)]
    spelled = Columns(lambda v: v.name, dict.fromkeys(variables, ANY_KIND), frozenset(), "tick", variables)
    assert Lowering(dialect, "q", 0).value(Call(name, variables), spelled).startswith("tw_eval(")


def test_the_page_is_made_of_the_tables() -> None:
    """Where this fails: python -m tests.functions_page --update."""
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize(("name", "written"), [("STRLEN", "STRLEN(a)"), ("SUBSTR", "SUBSTR(a, b[, c])"), ("=", "a = b"), ("NOW", "NOW()"),
                                               ("BNODE", "BNODE([a])"), ("SUM", "SUM([DISTINCT] a)"), ("CONCAT", "CONCAT(a, ...)"),
                                               ("<http://www.w3.org/2001/XMLSchema#integer>", "xsd:integer(a)")])
def test_functions_are_shown_as_they_are_written(name: str, written: str) -> None:
    assert form(name) == written
