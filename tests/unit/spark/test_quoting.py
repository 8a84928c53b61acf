"""Values become literals of SQL in one place, `Dialect.quote`: nothing else puts quotes around them, and each literal is its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import duckdb
import pytest
import sqlglot
from hypothesis import given, strategies as st
from pyspark.sql import SparkSession
from sqlglot import exp

from engine.sql.dialect import DIALECTS, DUCKDB, SPARK, Dialect, fixed

QUOTES = "'\"`"
DIALECT = "engine/sql/dialect.py"
QUOTING = {(DIALECT, "quote"), (DIALECT, "fixed")}
"""The functions that make literals; `fixed` of Thalweg's own words only."""
NOT_SQL = {"engine/spark/java.py", "engine/spark/warm.py"}
"""Modules that make options of a JVM, and tokens."""


def _texts(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _quoted_by_hand(node: ast.AST) -> bool:
    """Whether an expression puts a value between quotes: beside a brace of a template, by +, % or join, or by repr."""
    match node:
        case ast.JoinedStr(values=parts):
            for before, part, after in zip([None, *parts], parts, [*parts[1:], None]):
                if isinstance(part, ast.FormattedValue):
                    beside = (_texts(before)[-1:] if before else "") + (_texts(after)[:1] if after else "")
                    if part.conversion in (ord("r"), ord("a")) or any(quote in beside for quote in QUOTES):
                        return True
        case ast.Call(func=ast.Name(id="repr" | "ascii")):
            return True
        case ast.Attribute(value=ast.Constant(value=str() as text), attr="format"):
            return any(f"{quote}{{" in text or f"}}{quote}" in text for quote in QUOTES)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="join")):
            return any(quote in (text[:1], text[-1:]) for quote in QUOTES)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return any(quote in (_texts(left)[-1:], _texts(right)[:1]) for quote in QUOTES)
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return any(f"{quote}%" in text or f"%s{quote}" in text for quote in QUOTES)
    return False


def found_by_hand(source: str, path: str) -> Iterator[str]:
    """Where a module puts values between quotes itself; messages of exceptions, and what QUOTING names, may."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) or isinstance(node, ast.FunctionDef) and (path, node.name) in QUOTING:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("logging."):
            continue
        if _quoted_by_hand(node):
            yield f"{path}:{node.lineno}: {ast.unparse(node)}"  # type: ignore[attr-defined]
        waiting += ast.iter_child_nodes(node)


def test_only_the_dialect_quotes(repository: Path) -> None:
    sqlite = [repository / "engine" / "runtime" / f"{name}.py" for name in ("database", "results")]
    folders = ("spark", "sql", "worker", "execution")
    written = [path for folder in folders for path in sorted((repository / "engine" / folder).rglob("*.py"))]
    modules = {str(path.relative_to(repository)): path for path in [*written, *sqlite]}
    found = [place for name, path in modules.items() if name not in NOT_SQL for place in found_by_hand(path.read_text("utf-8"), name)]
    assert NOT_SQL < modules.keys() and len(modules) > 40
    assert found == []


@pytest.mark.parametrize("text", [
    "f\"WHERE p = '{token}'\"", "f\"SELECT '{a}' AS x\"", "f'FROM parquet.`{path}`'", "f'{path!r}'", "repr(path)", "\"'\" + text + \"'\"",
    "\"p = '{}'\".format(token)", "\"p = '{}'\".format", "\"p = '%s'\" % token", "\"', '\".join(tokens)"])
def test_the_check_finds_quoting_by_hand(text: str) -> None:
    assert len(list(found_by_hand(f"def made(token):\n    return {text}\n", "m.py"))) >= 1
    assert not list(found_by_hand(f"def made(token):\n    raise ValueError({text})\n", "m.py"))


PIECES = [
    "'", "''", '"', "\\", "\\\\", "\\'", "\0", "\x0012", "\0" + "1", "\\0", "\\101", "\\u0041", "\\U0001F600", "\\x41", "\\n", "\\%", "\\_",
    "\x1a", "${x}", "${", "$\\{", "{", "}", "$$", "%s", "--", "/*", "*/", ";", "\n", "\r\n", "\r", "\t", "\x7f", "\ufeff", "\ufffe",
    "\uffff", "\U0010ffff", "\U0001f600", "e\u0301", "\u2019", "\u2028", "`", "E'", "r'", "X'41'", "N'", "?", ":x", "#", "@",
    "01", "7", " ", "a"]
CHARACTERS = st.characters(exclude_categories=("Cs",))
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(CHARACTERS, max_size=3)), max_size=8).map("".join)
ALL = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def every_character(at_once: int) -> list[str]:
    """Texts with all of Unicode in them, after what would make the next character mean something else."""
    return [before + "".join(ALL[first:first + at_once]) for before in ("", "\\", "$", "\0", "'") for first in range(0, len(ALL), at_once)]


def statement(dialect: Dialect, texts: Sequence[str]) -> str:
    return f"SELECT n, t FROM (VALUES {', '.join(f'({n}, {dialect.quote(text)})' for n, text in enumerate(texts))}) AS v(n, t) ORDER BY n"


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    yield connection
    connection.close()


@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_a_literal_is_its_text_in_duckdb(duck: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    assert [text for _, text in duck.execute(statement(DUCKDB, texts)).fetchall()] == texts


def test_a_literal_of_any_character_is_its_text_in_duckdb(duck: duckdb.DuckDBPyConnection) -> None:
    texts = every_character(1 << 14)
    assert [text for _, text in duck.execute(statement(DUCKDB, texts)).fetchall()] == texts
    assert duck.execute(f"SELECT 'x' = {DUCKDB.quote(chr(0))}, 'x' IN ({DUCKDB.quote('x' + chr(0))}, 'y')").fetchall() == [(False, False)]


def test_a_literal_is_its_text_in_spark(spark: SparkSession) -> None:
    """A few jobs for all: each piece beside each other one, what is drawn at random, and all of Unicode."""
    random = Random(1)
    texts = [a + b for a in PIECES for b in PIECES]
    texts += ["".join(random.choice((random.choice(PIECES), random.choice(ALL))) for _ in range(random.randrange(12)))
              for _ in range(2_000)]
    for listed in (texts, every_character(1 << 14)):
        assert spark.sql(statement(SPARK, listed)).toArrow()["t"].to_pylist() == listed


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
@given(text=TEXTS.map(lambda text: text.replace("\0", "")), other=TEXTS.map(lambda text: text.replace("\0", "")))
def test_a_literal_is_one_token(dialect: Dialect, text: str, other: str) -> None:
    """To another reader of the dialect too."""
    one, two = map(dialect.quote, (text, other))
    [parsed] = sqlglot.parse(f"SELECT {one}, {two}", dialect={"local": "duckdb", "sql": "spark"}[dialect.name])
    assert parsed is not None and [type(item) for item in parsed.expressions] == [exp.Literal, exp.Literal]


@given(TEXTS)
def test_a_text_of_our_own_is_the_same_in_both_or_refused(text: str) -> None:
    try:
        written = fixed(text)
    except ValueError:
        return
    assert written == DUCKDB.quote(text) == SPARK.quote(text)
