"""Expressions -> SQL: what the tables of `functions` say is SQL, everything else one Python call per expression.

SQL's three-valued logic is SPARQL's error logic with NULL for an error, so lowered parts and calls combine freely under
``&& || !``. Which function runs how is listed in `functions/tables.py` (docs/functions.md).
"""

from engine.functions.terms import RDF_LANG_STRING, XSD_STRING, split
from engine.functions.typed import Kind, Kinds, typed
from engine.ir import expressions as ex
from engine.ir.expressions import Call, Expression, is_iri
from engine.ir.strata import VALUE
from engine.ir.terms import Constant, Variable
from engine.sql.calls import Columns, is_rowwise
from engine.sql.codes import write_call
from engine.sql.dialect import Dialect, fixed
from engine.sql.functions import arithmetic, comparisons, strings
from engine.sql.functions.comparisons import MIRRORED, OF_NUMBERS, OPERATORS as COMPARISONS
from engine.sql.functions.strings import Text
from engine.sql.functions.tables import SIMPLE
from engine.sql.functions.values import HARD, INTEGER, NULL_STRING, NUMBERS, Typed, boolean_token, either, of_column, of_constant

LONGEST_TEXTS = 3_000
MOST_CHOICES = 16
LONGEST = 12_000
WHOLE = frozenset({*arithmetic.FIELDS, "STRLEN"})


class Lowering:
    """Lowers the expressions of one query; `identity` seeds RAND and UUID, `label_offset` makes NOW() the label of T. A `quick` text may
    end undecided (dialect.UNDECIDED) and is then to be run again without `quick`, which only calls Python. `calls` counts the calls of
    Python functions written so far; a text does not tell, since a literal may read like one."""

    def __init__(self, dialect: Dialect, identity: str, label_offset: int, quick: bool = True) -> None:
        self.dialect = dialect
        self.context = (identity, label_offset)
        self.quick = quick
        self.calls = 0

    def condition(self, expression: Expression, columns: Columns) -> str:
        """A SQL boolean: true, false, or NULL for an error."""
        return self.plain(expression, columns) or self._call("tw_test", expression, columns)

    def value(self, expression: Expression, columns: Columns) -> str:
        """A SQL string: the value's token, or NULL for an error."""
        return self.plain_value(expression, columns) or self._call("tw_eval", expression, columns)

    # -- truth values

    def plain(self, expression: Expression, columns: Columns) -> str | None:
        """The SQL form without a Python call, or None where there is none for the whole expression's own operator."""
        match expression:
            case Variable() if expression in columns.booleans:
                return columns.token(expression)
            case Call(function="&&" | "||" as operator, args=args):
                word = " AND " if operator == "&&" else " OR "
                return "(" + word.join(self.condition(a, columns) for a in args) + ")"
            case Call(function="!", args=(inner,)):
                return f"(NOT {self.condition(inner, columns)})"
            case Call(function="BOUND", args=(Variable() as v,)):
                return f"({columns.token(v) or 'NULL'} IS NOT NULL)"
            case Call(function="ISIRI" | "ISURI" | "ISBLANK" | "ISLITERAL" as test, args=(Variable() as v,)):
                return SIMPLE[test].format(columns.token(v) or NULL_STRING)
            case Call(function="SAMETERM", args=args):
                sides = [self.plain_value(arg, columns) for arg in args]
                return None if None in sides else SIMPLE["SAMETERM"].format(*sides)
            case Call(function=operator, args=(left, right)) if operator in COMPARISONS:
                return self._comparison(expression, operator, left, right, columns)
            case Call(function="IN" | "NOT IN" as word, args=(Variable() as v, *choices)) if choices and all(map(is_iri, choices)):
                tokens = ", ".join(self.value(c, columns) for c in choices)
                return f"({columns.token(v) or NULL_STRING} {word} ({tokens}))"
        return self._quick_test(expression, columns) if self.quick else None

    def _quick_test(self, expression: Expression, columns: Columns) -> str | None:
        match expression:
            case Call(function="IN" | "NOT IN" as word, args=(tested, *choices)) if choices and len(choices) <= MOST_CHOICES:
                tests = [self.plain(Call("=", (tested, choice)), columns) for choice in choices]
                if None in tests or sum(len(t or "") for t in tests) > LONGEST:
                    return None
                return f"({'NOT ' if word == 'NOT IN' else ''}{either([t for t in tests if t])})"
            case Call(function=name, args=(left, right)) if name in OF_NUMBERS:
                parts = [self._numeric(left, columns), self._numeric(right, columns),
                         self.plain(Call(OF_NUMBERS[name], (left, right)), columns)]
                return None if None in parts else "(CASE WHEN {} AND {} THEN {} END)".format(*parts)
            case Call(function="ISNUMERIC", args=(Variable() as v,)) if v in columns.typed:
                kind = f"{columns.token(v)}_k"
                return f"(CASE WHEN {kind} = {HARD} THEN {self._otherwise_test(expression, columns)} ELSE {kind} {NUMBERS} END)"
            case Call(function=name, args=(first, second)) if name in strings.TESTS:
                one, two = self.text(first, columns), self.text(second, columns)
                test = strings.TESTS[name](self.dialect, one, two) if one and two else None
                return self._decided(test, (*one.undecided, *two.undecided), expression, columns) if test and one and two else None
            case Call(function="REGEX", args=(source, Constant() as pattern, *flags)):
                return self._regex(expression, source, pattern, flags, columns)
        return None

    def _numeric(self, operand: Expression, columns: Columns) -> str | None:
        """Whether an operand is a number; None where only Python tells."""
        if isinstance(operand, Constant):
            return "TRUE" if Kind.INTEGER <= typed(operand.token)[0] <= Kind.DOUBLE else None
        return self._quick_test(Call("ISNUMERIC", (operand,)), columns)

    def _decided(self, test: str, undecided: tuple[str, ...], expression: Expression, columns: Columns) -> str:
        return f"(CASE WHEN {either([*undecided])} THEN {self._otherwise_test(expression, columns)} ELSE {test} END)" if undecided else test

    def _regex(self, expression: Expression, source: Expression, pattern: Constant, flags: list[Expression],
               columns: Columns) -> str | None:
        plain = [split(c.token) for c in (pattern, *flags) if isinstance(c, Constant)]
        text = self.text(source, columns)
        if text is None or len(plain) <= len(flags) or any(p.kind != "literal" or p.lang for p in plain):
            return None
        found = strings.regex_text(plain[0].lexical, plain[1].lexical if flags else "")
        if found is None or any(typed(c.token)[0] != Kind.STRING for c in (pattern, *flags) if isinstance(c, Constant)):
            return None
        written, ascii_only, longest = found
        undecided = [f"length({text.body}) > {longest}"] + ([strings.beyond_ascii(self.dialect, text)] if ascii_only else [])
        return self._decided(self.dialect.matches(f"({text.body})", written), (*text.undecided, *undecided), expression, columns)

    def _comparison(self, whole: Expression, operator: str, left: Expression, right: Expression, columns: Columns) -> str | None:
        if isinstance(left, Constant) and (isinstance(right, Variable) or is_iri(left)):
            left, right, operator = right, left, MIRRORED[operator]
        if isinstance(left, Variable) and columns.token(left) is None or isinstance(right, Variable) and columns.token(right) is None:
            return "CAST(NULL AS BOOLEAN)"
        if operator in ("=", "!=") and is_iri(right) and left not in columns.booleans and (token := self.plain_value(left, columns)):
            return f"({token} {COMPARISONS[operator]} {self.value(right, columns)})"
        if not self.quick:
            return None
        if isinstance(left, Variable) and isinstance(right, Constant) and left in columns.typed:
            found = comparisons.with_constant(self.dialect, operator, str(columns.token(left)), right.token, columns.typed[left])
            if found is not None:
                return found
        return self._texts_compared(whole, operator, left, right, columns) or self._typed_compared(whole, operator, left, right, columns)

    def _texts_compared(self, whole: Expression, operator: str, left: Expression, right: Expression, columns: Columns) -> str | None:
        """Strings that functions make, with each other or with constants."""
        if isinstance(left, Variable) or isinstance(right, Variable) or isinstance(left, Constant) and isinstance(right, Constant):
            return None
        one, two = self.text(left, columns), self.text(right, columns)
        if one is None or two is None:
            return None
        test = f"(({one.body}) {COMPARISONS[operator]} ({two.body}))"
        if one.tag != "''" or two.tag != "''":
            if operator != "=":
                return None
            both = f"({one.body}) IS NOT NULL AND ({two.body}) IS NOT NULL"
            test = f"(CASE WHEN ({one.tag}) = ({two.tag}) THEN {test} WHEN {both} THEN FALSE END)"
        return self._decided(test, (*one.undecided, *two.undecided), whole, columns)

    def _typed_compared(self, whole: Expression, operator: str, left: Expression, right: Expression, columns: Columns) -> str | None:
        one, two = self.typed(left, columns), self.typed(right, columns)
        if one is None or two is None or one.known is not None and two.known is not None:
            return None
        made = comparisons.compare(self.dialect, operator, one, two, self._otherwise_test(whole, columns))
        return made if len(made) <= LONGEST else None

    # -- values

    def plain_value(self, expression: Expression, columns: Columns) -> str | None:
        """The SQL of a token without a Python call for every row, or None."""
        match expression:
            case Constant(token=token):
                return self.dialect.quote(token)
            case Variable() if expression not in columns.booleans:
                return columns.token(expression) or NULL_STRING
            case Variable() | Call(function="!", args=(Variable(),)) if ex.variables_of(expression) <= columns.booleans:
                return boolean_token(self.condition(expression, columns))
            case Call(function="DATATYPE" | "STR" | "LANG" as name, args=(Variable() as v,)) if self.quick and v not in columns.booleans:
                return self._part_of(name, expression, columns.token(v) or NULL_STRING, columns)
            case Call(function=name, args=(Variable() as v,)) if name == VALUE and v not in columns.booleans:
                return self._data_value(expression, columns.token(v) or NULL_STRING, columns)
            case Call(function="COALESCE", args=args) if args:
                parts = [self.plain_value(arg, columns) for arg in args]
                return None if None in parts else f"coalesce({', '.join(p for p in parts if p)})"
            case Call(function="IF", args=(condition, then, other)):
                test, *sides = self.plain(condition, columns), self.plain_value(then, columns), self.plain_value(other, columns)
                return None if test is None or None in sides else f"(CASE WHEN {test} THEN {sides[0]} WHEN NOT {test} THEN {sides[1]} END)"
            case Call(function=name) if name in SIMPLE or name in COMPARISONS or name in ("!", "&&", "||", "IN", "NOT IN"):
                before = self.calls
                truth = self.plain(expression, columns)
                return None if truth is None or self.calls > before else boolean_token(truth)
            case Call() if self.quick:
                return self._made(expression, columns)
        return None

    def _data_value(self, expression: Expression, column: str, columns: Columns) -> str | None:
        """The literal that stands for a data value: of a text without language, as most are, itself."""
        if not self.dialect.case_short_circuits:
            return None
        return f"(CASE WHEN right({column}, 1) = '\"' THEN {column} ELSE {self._call('tw_eval', expression, columns)} END)"

    def _part_of(self, name: str, expression: Expression, column: str, columns: Columns) -> str:
        if name == "STR":
            escaped = f"instr({column}, {self.dialect.quote(chr(92))}) > 0"
            return (f"(CASE substr({column}, 1, 1) WHEN '\"' THEN substr({column}, 1, length({column}) - "
                    f"length({self.dialect.after_quote(column)})) WHEN '<' THEN CASE WHEN {escaped} THEN "
                    f"{self._otherwise_value(expression, columns)} ELSE '\"' || substr({column}, 2, length({column}) - 2) || '\"' END END)")
        tail = self.dialect.after_quote(column)
        plain, tagged, other = {
            "LANG": ("'\"\"'", f"'\"' || substr({tail}, 2) || '\"'", "'\"\"'"),
            "DATATYPE": (fixed(f"<{XSD_STRING}>"), fixed(f"<{RDF_LANG_STRING}>"), f"substr({tail}, 3)")}[name]
        return (f"(CASE WHEN substr({column}, 1, 1) = '\"' THEN CASE right({column}, 1) WHEN '\"' THEN {plain} "
                f"WHEN '>' THEN {other} ELSE {tagged} END END)")

    def _made(self, expression: Call, columns: Columns) -> str | None:
        """Tokens of computed texts and numbers."""
        text = self.text(expression, columns)
        if text is not None:
            made = strings.token(self.dialect, text, self._otherwise_value(expression, columns))
            return made if len(made) <= LONGEST else None
        number = self.typed(expression, columns)
        if number is None or number.near or not (self.dialect.case_short_circuits or expression.function in WHOLE):
            return None
        made = arithmetic.token(number, self._otherwise_value(expression, columns))
        return made if len(made) <= LONGEST else None

    def companions(self, expression: Expression, columns: Columns) -> tuple[tuple[str, str, str], Kinds] | None:
        """Kind, number and micros of an expression, for the columns beside its token, and the kinds of its values; None where they are not
        to be had."""
        value = self.typed(expression, columns)
        if value is None or value.near:
            return None
        if not value.computed:
            made = f"CAST({value.kind} AS TINYINT)", f"CAST({value.number} AS DOUBLE)", f"CAST({value.micros} AS BIGINT)"
            return made, value.kinds
        kind = f"CASE WHEN {either(value.undecided)} THEN {HARD} ELSE {value.kind} END"
        return (f"CAST({kind} AS TINYINT)", f"({value.number} + 0e0)", "CAST(NULL AS BIGINT)"), value.kinds | {HARD}

    # -- operands

    def typed(self, expression: Expression, columns: Columns) -> Typed | None:
        """The value by its companions, None where they are not to be had: of a text that is not `quick` none are."""
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
            case Call(function=name, args=(Variable() as v,)) if name in arithmetic.FIELDS and v in columns.typed:
                return arithmetic.field(name, str(columns.token(v)))
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

    # -- calls

    def _otherwise_test(self, expression: Expression, columns: Columns) -> str:
        return self.dialect.otherwise(lambda: self._call("tw_test", expression, columns), "BOOLEAN")

    def _otherwise_value(self, expression: Expression, columns: Columns) -> str:
        return self.dialect.otherwise(lambda: self._call("tw_eval", expression, columns), "STRING")

    def apply(self, operator: str, tokens: list[str], at: str | None) -> str:
        """An operator of engine/functions applied to tokens that are SQL."""
        names = tuple(Variable(f".{number}") for number in range(len(tokens)))
        self.calls += 1
        code = write_call(Call(operator, names), [v.name for v in names], [], *self.context)
        return self.dialect.call("tw_eval", code, at or "CAST(0 AS BIGINT)", tokens)

    def _call(self, function: str, expression: Expression, columns: Columns) -> str:
        names = sorted(v for v in ex.variables_of(expression) if columns.token(v) is not None)
        solution: list[str] = []
        if is_rowwise(expression):
            own = [v for v in columns.row if columns.token(v) is not None]
            names, solution = sorted({*names, *own}), [v.name for v in own]
        self.calls += 1
        code = write_call(expression, [v.name for v in names], solution, *self.context)
        tokens = [boolean_token(str(columns.token(v))) if v in columns.booleans else str(columns.token(v)) for v in names]
        return self.dialect.call(function, code, columns.at or "CAST(0 AS BIGINT)", tokens)


def _whole(expression: Expression) -> int | None:
    """A small whole constant, else None."""
    if not isinstance(expression, Constant):
        return None
    kind, number, _ = typed(expression.token)
    return int(number) if kind == Kind.INTEGER and number is not None and abs(number) < 1e9 else None
