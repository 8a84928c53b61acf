"""Functions on strings as SQL (SPARQL 1.1 section 17.4.3): a string is its characters and its tag, the token is made at the end.

The characters are those between the quotes, unescaped where there is a backslash. What depends on Unicode's tables (case) is SQL for
ASCII texts, and a token is SQL where nothing in the text needs an escape; other rows are undecided.

REGEX is SQL for the patterns for which Java's and RE2's answers are those of engine/functions. Whether a part of the text matches does not
depend on how an engine searches. So what is left out is only what the engines read differently (back references, classes of Unicode beyond
ASCII, case beyond ASCII) or run badly (repeated groups in Java).
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.functions import regex_syntax as syntax
from engine.functions.context import ExpressionError
from engine.functions.regex_matchers import Writer
from engine.functions.regexes import regex
from engine.sql.dialect import Dialect

NEEDS_ESCAPE = "[\\x00-\\x1f\"\\\\\\x7f\\x{FFFE}\\x{FFFF}]"


@dataclass(frozen=True, slots=True)
class Text:
    """A string: SQL of its characters (null where there is no string) and of its tag with ``@`` ('' for none).

    `constant` are the characters where they are known; `undecided` are conditions under which SQL cannot tell them.
    """

    body: str
    tag: str = "''"
    constant: str | None = None
    undecided: tuple[str, ...] = ()


def escaped_lexical(dialect: Dialect, token: str) -> str:
    """Between the quotes of a literal, as it stands."""
    return f"substr({token}, 2, length({token}) - length({dialect.after_quote(token)}) - 2)"


def body(dialect: Dialect, token: str) -> str:
    """The characters of a string literal."""
    quoted = f"substr({token}, 1, length({token}) - length({dialect.after_quote(token)}))"
    return (f"CASE WHEN instr({token}, {dialect.quote(chr(92))}) > 0 THEN {dialect.unescaped(quoted)} "
            f"WHEN right({token}, 1) = '\"' THEN substr({token}, 2, length({token}) - 2) ELSE {escaped_lexical(dialect, token)} END")


def is_string(token: str) -> str:
    """Whether a token is a string with or without tag."""
    return f"(substr({token}, 1, 1) = '\"' AND right({token}, 1) <> '>')"


def of_column(dialect: Dialect, token: str) -> Text:
    """The string that a column holds, if it is one."""
    tag = f"CASE WHEN right({token}, 1) = '\"' THEN '' ELSE {dialect.after_quote(token)} END"
    return Text(f"CASE WHEN {is_string(token)} THEN {body(dialect, token)} END", tag)


def of_str(dialect: Dialect, token: str) -> Text:
    """STR of a column: an IRI's characters, a literal's lexical form."""
    return Text(f"CASE substr({token}, 1, 1) WHEN '<' THEN substr({token}, 2, length({token}) - 2) WHEN '\"' "
                f"THEN {body(dialect, token)} END")


def of_lang(dialect: Dialect, token: str) -> Text:
    """LANG of a column: the tag, '' of other literals."""
    return Text(f"CASE WHEN substr({token}, 1, 1) = '\"' THEN CASE WHEN right({token}, 1) IN ('\"', '>') THEN '' "
                f"ELSE substr({dialect.after_quote(token)}, 2) END END")


def _compatible(first: Text, second: Text, truth: str) -> str:
    """`truth` where the arguments are compatible (section 17.4.3.1.2), else null."""
    if second.tag == "''":
        return f"({truth})"
    return f"(CASE WHEN {second.tag} = '' OR {second.tag} = {first.tag} THEN {truth} END)"


def _langmatches(dialect: Dialect, tag: Text, wanted: Text) -> str | None:
    if wanted.constant is None or not wanted.constant.isascii() or tag.tag != "''":
        return None
    text, pattern = f"lower({tag.body})", wanted.constant.lower()
    if pattern == "*":
        return f"({tag.body} <> '')"
    return f"({tag.body} <> '' AND ({text} = {dialect.quote(pattern)} OR {dialect.starts(text, dialect.quote(pattern + '-'))}))"


TESTS: dict[str, Callable[[Dialect, Text, Text], str | None]] = {
    "CONTAINS": lambda dialect, first, second: _compatible(first, second, f"contains({first.body}, {second.body})"),
    "STRSTARTS": lambda dialect, first, second: _compatible(first, second, dialect.starts(first.body, second.body)),
    "STRENDS": lambda dialect, first, second: _compatible(first, second, dialect.ends(first.body, second.body)),
    "LANGMATCHES": _langmatches}
"""Truth values of two strings."""


def beyond_ascii(dialect: Dialect, text: Text) -> str:
    """Whether some character is beyond ASCII."""
    return f"{dialect.octets(text.body)} <> length({text.body})"


def _cased(function: str) -> Callable[[Dialect, Text], Text]:
    def cased(dialect: Dialect, text: Text) -> Text:
        return Text(f"{function}({text.body})", text.tag, undecided=(*text.undecided, beyond_ascii(dialect, text)))
    return cased


TEXTS: dict[str, Callable[[Dialect, Text], Text]] = {"UCASE": _cased("upper"), "LCASE": _cased("lower")}
"""Strings of one string."""


def substr(text: Text, start: int, length: int | None = None) -> Text:
    """SUBSTR with whole constants: positions below 1 count, as in fn:substring."""
    first, end = max(start, 1), None if length is None else start + length
    if end is not None and end <= first:
        return Text(f"substr({text.body}, 1, 0)", text.tag, undecided=text.undecided)
    limit = "" if end is None else f", {end - first}"
    return Text(f"substr({text.body}, {first}{limit})", text.tag, undecided=text.undecided)


def _beside(texts: list[Text], before: bool) -> Text | None:
    """STRBEFORE or STRAFTER of a constant without tag."""
    text, mark = texts
    if not mark.constant or mark.tag != "''":
        return None
    place = f"instr({text.body}, {mark.body})"
    found = f"CASE WHEN {place} > 0 THEN substr({text.body}, {place} + {len(mark.constant)}) WHEN {place} = 0 THEN '' END"
    found = f"substr({text.body}, 1, greatest({place} - 1, 0))" if before else found
    return Text(found, f"CASE WHEN {place} > 0 THEN {text.tag} ELSE '' END", undecided=text.undecided)


def concat(texts: list[Text]) -> Text:
    """CONCAT: with the tag that all share."""
    joined = " || ".join(f"({text.body})" for text in texts) or "''"
    undecided = tuple(condition for text in texts for condition in text.undecided)
    if all(text.tag == "''" for text in texts):
        return Text(joined, undecided=undecided)
    first, *others = (text.tag for text in texts)
    same = " AND ".join(f"({first}) = ({other})" for other in others) or "TRUE"
    return Text(joined, f"CASE WHEN {same} THEN {first} ELSE '' END", undecided=undecided)


PARTS: dict[str, Callable[[list[Text]], Text | None]] = {
    "SUBSTR": lambda texts: texts[0], "STRBEFORE": lambda texts: _beside(texts, True), "STRAFTER": lambda texts: _beside(texts, False),
    "CONCAT": concat}
"""Strings of several arguments (SUBSTR's places are constants: `substr`)."""


def token(dialect: Dialect, text: Text, otherwise: str) -> str:
    """The token of a string; `otherwise` stands for rows where the text needs escapes or is undecided."""
    escapes = dialect.matches(text.body, NEEDS_ESCAPE)
    undecided = " OR ".join([*text.undecided, escapes])
    tail = "" if text.tag == "''" else f"|| ({text.tag})"
    return f"(CASE WHEN {undecided} THEN {otherwise} ELSE '\"' || ({text.body}) || '\"' {tail} END)"


LONGEST = 300
_ASCII = 127


class Unsafe(Exception):
    """The pattern is left to Python."""


def regex_text(pattern: str, flags: str) -> tuple[str, bool, int] | None:
    """The pattern for both engines, whether it holds for ASCII texts only, and up to which length of text; None for an unsafe one."""
    if not set(flags) <= {"i"} or len(pattern) > LONGEST:
        return None
    try:
        compiled = regex(pattern, flags)
        tree, _ = syntax.parse(pattern)
        writer = _Writer(flags)
        text = writer.write(tree)
    except (ExpressionError, Unsafe):
        return None
    return ("(?i)" if flags else "") + text, writer.ascii_only or bool(flags), compiled.finder.longest


class _Writer(Writer):
    """Writes nodes as both engines read them, where these differ from Python."""

    def __init__(self, flags: str) -> None:
        super().__init__(flags)
        self.ascii_only = False

    def write(self, node: syntax.Node) -> str:
        match node:
            case syntax.Char(char):
                return _char(ord(char))
            case syntax.End():
                return "\\z"
            case syntax.Group(body):
                return f"(?:{self.write(body)})"
            case syntax.Repeat(body, least, most) if isinstance(body, (syntax.Char, syntax.CharClass, syntax.Dot)):
                return f"(?:{self.write(body)}){{{least},{'' if most is None else most}}}"
            case syntax.Repeat(body, 0, 1):
                return f"(?:{self.write(body)})?"
            case syntax.Repeat() | syntax.Reference():
                raise Unsafe
        return super().write(node)

    def char_class(self, node: syntax.CharClass) -> str:
        if node.minus is not None or (node.fixed and self.ignore_case):  # categories do not heed flag i
            raise Unsafe
        ranges = list(node.ranges)
        if node.fixed:
            self.ascii_only = True
            ranges += [(low, min(high, _ASCII)) for fixed in node.fixed for low, high in fixed if low <= _ASCII]
        if not ranges:
            raise Unsafe
        listed = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges)
        return f"[{'^' if node.negated else ''}{listed}]"


def _char(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise Unsafe
    return chr(code) if chr(code).isalnum() and code <= _ASCII else f"\\x{{{code:X}}}"
