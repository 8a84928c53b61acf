"""Operands that are SQL: an expression as a value by its typed companions, or as a string. None where it cannot be one."""

from __future__ import annotations

from dataclasses import dataclass

from engine.functions.terms import split
from engine.functions.typed import Kind, typed
from engine.ir.expressions import Call, Expression
from engine.ir.terms import Constant, Variable
from engine.sql.calls import Columns
from engine.sql.dialect import Dialect
from engine.sql.functions import arithmetic, dates, strings
from engine.sql.functions.strings import Text
from engine.sql.functions.values import INTEGER, NULL_STRING, Typed, of_column, of_constant

LONGEST_TEXTS = 3_000


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of one dialect; without `quick` none has companions."""

    dialect: Dialect
    quick: bool

    def typed(self, expression: Expression, columns: Columns) -> Typed | None:
        """The value by its companions, None where they are not to be had."""
        if not self.quick:
            return None
        if expression in columns.steps:
            return columns.steps[expression]
        match expression:
            case Variable() if expression in columns.typed:
                return of_column(str(columns.token(expression)), columns.typed[expression])
            case Constant(token=token):
                return of_constant(token, self.dialect.quote(token))
            case Call(function=name, args=(left, right)) if name in arithmetic.BINARY:
                one, two = self.typed(left, columns), self.typed(right, columns)
                return arithmetic.binary(name, one, two) if one and two else None
            case Call(function=name, args=(only,)) if name in arithmetic.UNARY:
                operand = self.typed(only, columns)
                return arithmetic.unary(name, operand) if operand else None
            case Call(function=name, args=(Variable() as v,)) if name in dates.FIELDS and v in columns.typed:
                return dates.field(name, str(columns.token(v)))
            case Call(function="STRLEN", args=(only,)):
                text = self.text(only, columns)
                if text is not None and not text.undecided:
                    length = f"CAST(length({text.body}) AS DOUBLE)"
                    return Typed(f"(CASE WHEN {length} IS NOT NULL THEN {INTEGER} END)", length, computed=True, kinds=frozenset((INTEGER,)))
        return None

    def text(self, expression: Expression, columns: Columns) -> Text | None:
        """The value as a string, None where it cannot be one in SQL."""
        match expression:
            case Constant(token=token) if token[0] == '"' and typed(token)[0] in (Kind.STRING, Kind.LANG):
                parsed = split(token)
                if "\0" in parsed.lexical:     # no literal of DuckDB's holds it
                    return None
                tag = self.dialect.quote(f"@{parsed.lang}") if parsed.lang else "''"
                return Text(self.dialect.quote(parsed.lexical), tag, parsed.lexical)
            case Variable() if expression not in columns.booleans:
                return strings.of_column(self.dialect, columns.token(expression) or NULL_STRING)
            case Call(function="STR" | "LANG" as name, args=(Variable() as v,)) if v not in columns.booleans:
                column = columns.token(v) or NULL_STRING
                return (strings.of_str if name == "STR" else strings.of_lang)(self.dialect, column)
            case Call(function="STR", args=(Call() as inner,)):
                text = self.text(inner, columns)
                return text and Text(text.body, undecided=text.undecided)
            case Call(function=name, args=args) if name in strings.TEXTS or name in strings.PARTS:
                return self._text_of(name, args, columns)
        return None

    def _text_of(self, name: str, args: tuple[Expression, ...], columns: Columns) -> Text | None:
        found = [self.text(arg, columns) for arg in (args if name == "CONCAT" else args[:1 if name == "SUBSTR" else 2])]
        texts = [text for text in found if text is not None]
        if len(texts) < len(found) or sum(len(t.body) for t in texts) > LONGEST_TEXTS:
            return None
        if name == "SUBSTR":
            places = [_whole(arg) for arg in args[1:]]
            return None if None in places or not places else strings.substr(texts[0], *[p for p in places if p is not None])
        return strings.TEXTS[name](self.dialect, texts[0]) if name in strings.TEXTS else strings.PARTS[name](texts)


def _whole(expression: Expression) -> int | None:
    """A small whole constant, else None."""
    if not isinstance(expression, Constant):
        return None
    kind, number, _ = typed(expression.token)
    return int(number) if kind == Kind.INTEGER and number is not None and abs(number) < 1e9 else None
