"""The tables of functions are complete, say each function once, and are what docs/functions.md shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.functions.library import FUNCTIONS
from engine.ir.expressions import Call
from engine.ir.terms import Variable
from engine.spark.sql.dialect import DIALECTS
from engine.spark.sql.functions.page import page
from engine.spark.sql.functions.tables import LOWERED, REFUSED, SIMPLE, UDF
from engine.spark.sql.lower import Columns, Lowering


def test_every_function_stands_in_one_table() -> None:
    tables = [*SIMPLE, *LOWERED, *UDF, *REFUSED]
    assert len(tables) == len(set(tables))
    assert {name for name in FUNCTIONS if not name.startswith("<")} <= set(tables)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
@pytest.mark.parametrize("name", [n for n in UDF if n in FUNCTIONS and n not in ("NOW", "RAND", "UUID", "STRUUID")])
def test_a_udf_is_a_call(name: str, dialect: object) -> None:
    variables = tuple(map(Variable, "abc"))[:max(1, FUNCTIONS[name].least)]
    spelled = Columns(lambda v: f"c{v.name}", frozenset(variables), frozenset(), "tick", variables)
    assert Lowering(dialect, "q", 0).value(Call(name, variables), spelled).startswith("tw_eval(")  # type: ignore[arg-type]


def test_the_page_is_made_of_the_tables() -> None:
    written = Path(__file__).resolve().parents[3] / "docs" / "functions.md"
    assert written.read_text("utf-8") == page()
