"""rdflib's SPARQL 1.1 grammar as a `Machine`: text without our own clauses in, parse tree with places out.

Binary operators of expressions are read by their precedence (SPARQL 1.1 grammar, rules 110 to 117) in place of the grammar's eight nested
rules, which would each be entered for every operand of a chain. The longest token wins (section 19.8): what can be read as an IRI
(``<?a&&?b>``) is no operator.
"""

import re
import string
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyparsing import Keyword, MatchFirst, Optional, Regex, Suppress, ZeroOrMore
from rdflib.plugins.sparql import parser as sparql
from rdflib.plugins.sparql.parserutils import Comp, Param, ParamList

from engine.ir.notation import STRENGTH
from engine.ir.windows import TIME_FUNCTIONS
from grammar.combinators import FAILED, FOREIGN, Function, Run
from grammar.machine import Element, LeafPlan, Machine, Plan
from grammar.text import IRI_REFERENCE, Node

_LEAVES = {
    "IRIREF": LeafPlan("iri", "an IRI", "<"),
    "PrefixedName": LeafPlan("pname", "an IRI", string.ascii_letters + ":" + FOREIGN),
    "Var": LeafPlan("variable", "a variable", "?$"),
    "BLANK_NODE_LABEL": LeafPlan("blank", "a blank node", "_"),
    "ANON": LeafPlan("anon", "a blank node", "["),
    "NIL": LeafPlan("nil", "'('", "("),
    "A": LeafPlan("a", "'a'", "a"),
    "INTEGER": LeafPlan("integer", "a number", string.digits),
    "DECIMAL": LeafPlan("decimal", "a number", string.digits + "."),
    "DOUBLE": LeafPlan("double", "a number", string.digits + "."),
    **{f"{kind.upper()}_POSITIVE": LeafPlan(kind, "a number", "+") for kind in ("integer", "decimal", "double")},
    **{f"{kind.upper()}_NEGATIVE": LeafPlan(kind, "a number", "-") for kind in ("integer", "decimal", "double")},
    **dict.fromkeys(("STRING_LITERAL_LONG1", "STRING_LITERAL1"), LeafPlan("string", "a string", "'")),
    **dict.fromkeys(("STRING_LITERAL_LONG2", "STRING_LITERAL2"), LeafPlan("string", "a string", '"')),
    "LANGTAG": LeafPlan("language", "a language tag", "@"),
    "PN_PREFIX": LeafPlan("prefix", "a prefix", string.ascii_letters + FOREIGN),
}
_BOOLEAN = LeafPlan("boolean", "a boolean", "tTfF")
_NODES = {
    "TriplesSameSubject": "Triples", "TriplesSameSubjectPath": "Triples",
    "BlankNodePropertyList": "Properties", "BlankNodePropertyListPath": "Properties",
    "Collection": "Collection", "CollectionPath": "Collection",
}
_OPERATOR = re.compile(rf"\|\||&&|!=|(?!{IRI_REFERENCE})<=?|>=?|[=*/+-]|(?:NOT[ \t\r\n]+)?IN(?![A-Za-z0-9_:.-])", re.IGNORECASE)


@dataclass(eq=False)
class BodyError(Exception):
    """The grammar came no further than `place`, where it tried the terminals `expected` (readable names, sorted)."""

    place: int
    expected: tuple[str, ...]


def parse_body(text: str) -> tuple[list[Node], Node]:
    """The declarations of the prologue and the query of a text without comments. Raises BodyError, machine.TooMuchEffort."""
    run = Run(text)
    out: list[Any] = []
    _, query = _compiled()
    place = query(run, 0, out)
    if place >= 0:
        place = run.skip(place)
        run.note(place, "the end of the text")
        if place == len(text):
            prologue, tree = out
            return prologue, tree
    raise BodyError(run.furthest, tuple(sorted(run.tried)))


@cache
def beginnings() -> tuple[tuple[str, frozenset[str]], ...]:
    """The readable names of all that an expression, a condition, a predicate... can begin with, the longest first."""
    elements: dict[str, list[Any]] = {
        "an expression": [sparql.UnaryExpression], "a condition": [sparql.Constraint],
        "a pattern": [sparql.GraphPatternNotTriples],
        "a term": [sparql.VarOrTerm, sparql.TriplesNode], "a predicate": [sparql.VerbPath, sparql.VerbSimple],
    }
    machine, _ = _compiled()
    names = {label: frozenset().union(*(machine.first(part).names for part in parts)) for label, parts in elements.items()}
    return tuple(sorted(names.items(), key=lambda item: -len(item[1])))


@cache
def _compiled() -> tuple[Machine, Function]:
    """The grammar and the function of a query. Built whole before anybody sees it: several threads parse."""
    replaced = _replaced()
    terminals = {name: getattr(sparql, name) for name in _LEAVES}
    leaves = {id(replaced.get(id(terminal), terminal)): _LEAVES[name] for name, terminal in terminals.items()}
    actions = {id(item.parseAction[0]): _LEAVES[name] for name, item in terminals.items() if item.parseAction}
    booleans: Any = sparql.BooleanLiteral
    actions |= {id(element.parseAction[0]): _BOOLEAN for element in booleans.exprs}
    nodes = {id(getattr(sparql, name)): node for name, node in _NODES.items()}
    machine = Machine(Plan(leaves, actions, {"pname": _LEAVES["PrefixedName"]}, nodes, replaced))
    return machine, machine.compile(sparql.Query)


def _replaced() -> dict[int, Any]:
    """Recursions of rdflib's, per triple or operator, as loops; strings with all escapes (it lacks some); our own built-in functions."""
    builtin: Any = sparql.BuiltInCall
    return {
        id(sparql.TriplesBlock): _triples("triples", sparql.TriplesSameSubjectPath),
        id(sparql.TriplesTemplate): _triples("triples", sparql.TriplesSameSubject),
        id(sparql.ConstructTriples): _triples("template", sparql.TriplesSameSubject),
        id(sparql.BuiltInCall): MatchFirst([*map(_time_function, TIME_FUNCTIONS), *builtin.exprs]),
        id(sparql.Expression): Element(_expression, sparql.UnaryExpression),
        id(sparql.STRING_LITERAL_LONG1): Regex(r"'''(?:'{0,2}(?:[^'\\]|\\[tbnrf\\\x22']))*'''"),
        id(sparql.STRING_LITERAL_LONG2): Regex(r'"""(?:"{0,2}(?:[^"\\]|\\[tbnrf\\"\x27]))*"""'),
        id(sparql.STRING_LITERAL1): Regex(r"'(?!'')(?:[^'\\\r\n]|\\[tbnrf\\\x22'])*'"),
        id(sparql.STRING_LITERAL2): Regex(r'"(?!"")(?:[^"\\\r\n]|\\[tbnrf\\"\x27])*"'),
    }


def _time_function(name: str) -> Any:
    return Comp(f"Builtin_{name}", Keyword(name) + Param("arg", sparql.ExpressionList))


def _triples(name: str, same_subject: Any) -> Any:
    one = ParamList(name, same_subject)
    return one + ZeroOrMore(Suppress(".") + one) + Optional(Suppress("."))


def _expression(machine: Machine) -> Function:
    """An expression over the grammar's UnaryExpression, with its ExpressionList for IN."""
    operand, operand_list = machine.compile(sparql.UnaryExpression), machine.compile(sparql.ExpressionList)

    def parse(run: Run, place: int, out: list[Any]) -> int:
        operands: list[Any] = []
        operators: list[str] = []
        place = operand(run, place, operands)
        while place >= 0:
            start = run.skip(place)
            run.note(start, "an operator")
            found = _OPERATOR.match(run.text, start)
            operator = " ".join(found[0].upper().split()) if found else ""
            strength = STRENGTH.get(operator, 0)
            while operators and STRENGTH[operators[-1]] >= strength:
                if STRENGTH[operators[-1]] == strength == 3:   # comparisons do not chain: what follows is not ours
                    found = None
                    strength = 0
                _reduce(operands, operators.pop())
            if found is None:
                out.append(operands[0])
                return place
            operators.append(operator)
            after = operand_list if operator.endswith("IN") else operand
            place = after(run, found.end(), operands)
        return FAILED

    return parse


def _reduce(operands: list[Any], operator: str) -> None:
    right = operands.pop()
    left = operands.pop()
    end = right[-1].end if isinstance(right, list) and right else getattr(right, "end", left.end)
    operands.append(Node("Binary", left.start, end, {"operator": operator, "left": left, "right": right}))
