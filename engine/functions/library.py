"""The tables of functions: SPARQL 1.1's functions and operators (section 17.4), and what rules call besides, such as RIF's built-ins.

The forms that do not evaluate all their arguments first (``&& || IF COALESCE BOUND IN`` and EXISTS) are in `expressions.py`.
"""

import hashlib
import operator
import re
from collections.abc import Callable

from engine.functions import arithmetic, compare, datatypes, dates, rif_numbers, rif_strings, strings
from engine.functions.context import Context, ExpressionError, Function
from engine.functions.datatypes import CASTS
from engine.functions.rif_values import caster, guard, identical, is_a, is_literal
from engine.functions.terms import RDF_LANG_STRING, Kind, Parsed, blank, characters, decode, iri, number, simple_text, split, string
from engine.ir.builtins import BUILTINS, DATATYPES, FUNC, IDENTICAL, PRED
from engine.ir.terms import is_language_tag, literal, resolve

_NOT_IN_IRIS = re.compile("[\x00-\x20<>\"{}|^`\\\\]")


def _literal(token: str) -> Parsed:
    if token[0] != '"':
        raise ExpressionError("not a literal")
    return split(token)


def _iri(token: str, base: str | None = None) -> str:
    if token[0] == "<":
        return token
    reference = simple_text(token)
    if _NOT_IN_IRIS.search(reference):
        raise ExpressionError("not an IRI")
    return iri(reference if base is None else resolve(reference, base[1:-1]))


def _strdt(text: str, datatype: str) -> str:
    if datatype[0] != "<" or datatype == iri(RDF_LANG_STRING):
        raise ExpressionError("not a datatype for STRDT")
    return literal(simple_text(text), datatype[1:-1])


def _strlang(text: str, tag: str) -> str:
    if not is_language_tag(simple_text(tag)):
        raise ExpressionError("not a language tag")
    return literal(simple_text(text), lang=simple_text(tag))


def _hash(name: str) -> Callable[[str], str]:
    def digest(token: str) -> str:
        return string(hashlib.new(name, simple_text(token).encode("utf-8", "surrogatepass")).hexdigest())
    return digest


def _rand(context: Context, site: str) -> str:
    return number(Kind.DOUBLE, (int.from_bytes(context.digest(f"RAND {site}")[:8], "big") >> 11) / (1 << 53))


def _uuid_text(context: Context, site: str) -> str:
    digits = context.digest(f"UUID {site}").hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _bnode(context: Context, site: str, name: str | None = None) -> str:
    purpose = f"BNODE call {site}" if name is None else f"BNODE name {simple_text(name)}"
    return blank("b" + context.digest(purpose).hex())


def _table(*functions: Function) -> dict[str, Function]:
    return {function.name: function for function in functions}


FUNCTIONS: dict[str, Function] = _table(
    # Operators (section 17.3)
    Function("=", compare.equal, 2, 2, truth=True),
    Function("!=", lambda first, second: not compare.equal(first, second), 2, 2, truth=True),
    *(Function(word, compare.ordered(word), 2, 2, truth=True) for word in compare.HOLDS), Function("+", arithmetic.add, 2, 2),
    Function("-", arithmetic.subtract, 2, 2), Function("*", arithmetic.multiply, 2, 2), Function("/", arithmetic.divide, 2, 2),
    Function("U+", arithmetic.plus, 1, 1), Function("U-", arithmetic.minus, 1, 1),
    Function("!", lambda token: not compare.effective_boolean_value(token), 1, 1, truth=True),
    # Terms (sections 17.4.1.8 and 17.4.2)
    Function("SAMETERM", operator.eq, 2, 2, truth=True), Function("ISIRI", lambda token: token[0] == "<", 1, 1, truth=True),
    Function("ISURI", lambda token: token[0] == "<", 1, 1, truth=True),
    Function("ISBLANK", lambda token: token[0] == "_", 1, 1, truth=True),
    Function("ISLITERAL", lambda token: token[0] == '"', 1, 1, truth=True),
    Function("ISNUMERIC", lambda token: decode(token).numeric, 1, 1, truth=True),
    Function("STR", lambda token: string(characters(token)), 1, 1),
    Function("LANG", lambda token: string(_literal(token).lang), 1, 1),
    Function("DATATYPE", lambda token: iri(_literal(token).datatype), 1, 1),
    Function("IRI", _iri, 1, 2), Function("URI", _iri, 1, 2),
    Function("BNODE", _bnode, 0, 1, volatile=True, rowwise=True), Function("STRDT", _strdt, 2, 2), Function("STRLANG", _strlang, 2, 2),
    Function("UUID", lambda context, site: iri("urn:uuid:" + _uuid_text(context, site)), 0, 0, volatile=True, rowwise=True),
    Function("STRUUID", lambda context, site: string(_uuid_text(context, site)), 0, 0, volatile=True, rowwise=True),
    # Strings (section 17.4.3)
    Function("STRLEN", strings.strlen, 1, 1), Function("SUBSTR", strings.substr, 2, 3), Function("UCASE", strings.ucase, 1, 1),
    Function("LCASE", strings.lcase, 1, 1), Function("STRSTARTS", strings.strstarts, 2, 2, truth=True),
    Function("STRENDS", strings.strends, 2, 2, truth=True), Function("CONTAINS", strings.contains, 2, 2, truth=True),
    Function("STRBEFORE", strings.strbefore, 2, 2), Function("STRAFTER", strings.strafter, 2, 2),
    Function("ENCODE_FOR_URI", strings.encode_for_uri, 1, 1), Function("CONCAT", strings.concat, 0, None),
    Function("LANGMATCHES", strings.langmatches, 2, 2, truth=True), Function("REGEX", strings.matches, 2, 3, truth=True),
    Function("REPLACE", strings.replace, 3, 4),
    # Numbers (section 17.4.4)
    Function("ABS", arithmetic.absolute, 1, 1), Function("ROUND", arithmetic.rounded, 1, 1), Function("CEIL", arithmetic.ceiling, 1, 1),
    Function("FLOOR", arithmetic.floor, 1, 1), Function("RAND", _rand, 0, 0, volatile=True, rowwise=True),
    # Dates and times (section 17.4.5)
    Function("NOW", lambda context, site: dates.at(context.at_ms), 0, 0, volatile=True),
    Function("YEAR", dates.year, 1, 1), Function("MONTH", dates.month, 1, 1),
    Function("DAY", dates.day, 1, 1), Function("HOURS", dates.hours, 1, 1), Function("MINUTES", dates.minutes, 1, 1),
    Function("SECONDS", dates.seconds, 1, 1), Function("TIMEZONE", dates.timezone, 1, 1), Function("TZ", dates.tz, 1, 1),
    # Hashes (section 17.4.6)
    *(Function(name, _hash(name.lower()), 1, 1) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")),
    # Constructor functions (section 17.5)
    *(Function(name, apply, 1, 1) for name, apply in CASTS.items()),
)


def _are_xml(first: str, second: str) -> bool:
    return is_a(first, "XMLLiteral") and is_a(second, "XMLLiteral")


_BY_NAMESPACE: dict[str, dict[str, Callable[..., str | bool]]] = {
    FUNC: {**rif_numbers.FUNCTIONS, **rif_strings.FUNCTIONS},
    PRED: {
        **{f"is-literal-{'not-' * negated}{name}": guard(name, negated) for name in DATATYPES for negated in (False, True)},
        "literal-not-identical": lambda first, second: (is_literal(first) and is_literal(second)
                                                        and not identical(first, second)),
        "XMLLiteral-equal": lambda first, second: _are_xml(first, second) and identical(first, second),
        "XMLLiteral-not-equal": lambda first, second: _are_xml(first, second) and not identical(first, second),
        **rif_numbers.PREDICATES, **rif_strings.PREDICATES},
}
BUILT_INS: dict[str, Callable[..., str | bool]] = {
    **{f"<{iri}>": caster(name) for name, iri in DATATYPES.items()},
    **{f"<{namespace}{name}>": apply for namespace, table in _BY_NAMESPACE.items() for name, apply in table.items()},
}
"""What computes each built-in of RIF, by IRI."""
# Functions whose value is a truth value as well as predicates.
_TRUTHS = frozenset((f"<{FUNC}not>",))

OF_RULES: dict[str, Function] = _table(
    *(Function(iri, BUILT_INS[iri], builtin.least, builtin.most, truth=builtin.kind == "predicate" or iri in _TRUTHS)
      for iri, builtin in BUILTINS.items()),
    Function(IDENTICAL, identical, 2, 2, truth=True),
    Function("<urn:thalweg:value>", datatypes.value, 1, 1),
    Function("<urn:thalweg:in-value-space>", datatypes.in_value_space, 2, 2, truth=True),
)
"""Functions that rules call besides: RIF's built-ins (RIF Datatypes and Built-Ins, 2nd edition, section 4) with its ``=``, and those for
OWL's datatypes (datatypes.py); no part of SPARQL. Casts to types that SPARQL's table has too are SPARQL's: one name has one function."""


def find(name: str, count: int) -> Function:
    """The function of this name for so many arguments. Raises ExpressionError where there is none."""
    function = FUNCTIONS.get(name) or OF_RULES.get(name)
    if function is None:
        raise ExpressionError(f"unknown function {name}")
    if count < function.least or (function.most is not None and count > function.most):
        raise ExpressionError(f"{name} does not take {count} arguments")
    return function
