"""Values become literals of SQL in one place, `Dialect.quote`: nothing else puts quotes around them, and each literal is its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

QUOTES = "'\"`"
DIALECT = "engine/spark/sql/dialect.py"
QUOTING = {(DIALECT, "quote"), (DIALECT, "fixed")}
"""The functions that make literals; `fixed` of Thalweg's own words only."""
NOT_SQL = {"engine/spark/archive.py", "engine/spark/warm.py", "engine/spark/sql/functions/page.py"}
"""Modules that make options of a JVM, tokens and pages."""


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
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
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
    modules = {str(path.relative_to(repository)): path for path in sorted((repository / "engine" / "spark").rglob("*.py"))}
    found = [place for name, path in modules.items() if name not in NOT_SQL for place in found_by_hand(path.read_text("utf-8"), name)]
    assert NOT_SQL < modules.keys() and len(modules) > 40
    assert found == []


@pytest.mark.parametrize("text", [
    "f\"WHERE p = '{token}'\"", "f\"SELECT '{a}' AS x\"", "f'FROM parquet.`{path}`'", "f'{path!r}'", "repr(path)", "\"'\" + text + \"'\"",
    "\"p = '{}'\".format(token)", "\"p = '%s'\" % token", "\"', '\".join(tokens)"])
def test_the_check_finds_quoting_by_hand(text: str) -> None:
    assert len(list(found_by_hand(f"def made(token):\n    return {text}\n", "m.py"))) >= 1
    assert not list(found_by_hand(f"def made(token):\n    raise ValueError({text})\n", "m.py"))
