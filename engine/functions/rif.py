"""The built-ins of RIF (RIF Datatypes and Built-Ins, 2nd edition, section 4) as functions of tokens, by IRI; RIF's ``=`` beside them.

Casts to types that SPARQL's table has too are SPARQL's (library.py): one name has one function.
"""

from collections.abc import Callable

from engine.functions import rif_numbers, rif_strings
from engine.functions.context import Function
from engine.functions.rif_values import caster, guard, identical, is_a, is_literal
from engine.ir.builtins import BUILTINS, DATATYPES, FUNC, IDENTICAL, PRED


def _are_xml(first: str, second: str) -> bool:
    return is_a(first, "XMLLiteral") and is_a(second, "XMLLiteral")


_TABLES: dict[str, dict[str, Callable[..., str | bool]]] = {
    FUNC: {**rif_numbers.FUNCTIONS, **rif_strings.FUNCTIONS},
    PRED: {
        **{f"is-literal-{'not-' * negated}{name}": guard(name, negated) for name in DATATYPES for negated in (False, True)},
        "literal-not-identical": lambda first, second: (is_literal(first) and is_literal(second)
                                                        and not identical(first, second)),
        "XMLLiteral-equal": lambda first, second: _are_xml(first, second) and identical(first, second),
        "XMLLiteral-not-equal": lambda first, second: _are_xml(first, second) and not identical(first, second),
        **rif_numbers.PREDICATES, **rif_strings.PREDICATES},
}
APPLY: dict[str, Callable[..., str | bool]] = {
    **{f"<{iri}>": caster(name) for name, iri in DATATYPES.items()},
    **{f"<{namespace}{name}>": apply for namespace, table in _TABLES.items() for name, apply in table.items()},
}
# Functions whose value is a truth value as well as predicates.
_TRUTHS = frozenset((f"<{FUNC}not>",))

FUNCTIONS: dict[str, Function] = {
    **{iri: Function(iri, APPLY[iri], builtin.least, builtin.most, truth=builtin.kind == "predicate" or iri in _TRUTHS)
       for iri, builtin in BUILTINS.items()},
    IDENTICAL: Function(IDENTICAL, identical, 2, 2, truth=True),
}
