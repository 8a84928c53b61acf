"""rdflib's SPARQL 1.1 grammar as a `Machine`: text without our own clauses in, parse tree with places out."""

from __future__ import annotations

import string
from functools import cache
from typing import Any

from pyparsing import Keyword, MatchFirst, Optional, Regex, Suppress, ZeroOrMore
from rdflib.plugins.sparql import parser as sparql
from rdflib.plugins.sparql.parserutils import Comp, Param, ParamList

from engine.ir.windows import TIME_FUNCTIONS
from grammar.climbing import expression
from grammar.machine import LeafPlan, Machine, Plan
from grammar.run import FOREIGN, Function, Run
from grammar.tree import Node

_DIGITS = string.digits
_LEAVES = {
    "IRIREF": LeafPlan("iri", "an IRI", "<"),
    "PrefixedName": LeafPlan("pname", "an IRI", string.ascii_letters + ":" + FOREIGN),
    "Var": LeafPlan("variable", "a variable", "?$"),
    "BLANK_NODE_LABEL": LeafPlan("blank", "a blank node", "_"),
    "ANON": LeafPlan("anon", "a blank node", "["),
    "NIL": LeafPlan("nil", "'('", "("),
    "A": LeafPlan("a", "'a'", "a"),
    "INTEGER": LeafPlan("integer", "a number", _DIGITS),
    "DECIMAL": LeafPlan("decimal", "a number", _DIGITS + "."),
    "DOUBLE": LeafPlan("double", "a number", _DIGITS + "."),
    "INTEGER_POSITIVE": LeafPlan("integer", "a number", "+"),
    "DECIMAL_POSITIVE": LeafPlan("decimal", "a number", "+"),
    "DOUBLE_POSITIVE": LeafPlan("double", "a number", "+"),
    "INTEGER_NEGATIVE": LeafPlan("integer", "a number", "-"),
    "DECIMAL_NEGATIVE": LeafPlan("decimal", "a number", "-"),
    "DOUBLE_NEGATIVE": LeafPlan("double", "a number", "-"),
    "STRING_LITERAL_LONG1": LeafPlan("string", "a string", "'"),
    "STRING_LITERAL_LONG2": LeafPlan("string", "a string", '"'),
    "STRING_LITERAL1": LeafPlan("string", "a string", "'"),
    "STRING_LITERAL2": LeafPlan("string", "a string", '"'),
    "LANGTAG": LeafPlan("language", "a language tag", "@"),
    "PN_PREFIX": LeafPlan("prefix", "a prefix", string.ascii_letters + FOREIGN),
}
_BOOLEAN = LeafPlan("boolean", "a boolean", "tTfF")
_NODES = {
    "TriplesSameSubject": "Triples", "TriplesSameSubjectPath": "Triples",
    "BlankNodePropertyList": "Properties", "BlankNodePropertyListPath": "Properties",
    "Collection": "Collection", "CollectionPath": "Collection",
}


class BodyError(Exception):
    """The grammar came no further than `place`, where it tried the terminals `expected` (readable names, sorted)."""

    def __init__(self, place: int, expected: tuple[str, ...]) -> None:
        super().__init__(f"at {place}: expected {', '.join(expected)}")
        self.place = place
        self.expected = expected


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
    names = {label: frozenset().union(*(machine.first(part).names for part in parts))
             for label, parts in elements.items()}
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
    """What rdflib spells as a recursion, per triple or per operator, as a loop; strings with all escapes (it lacks some); and our own
    built-in functions beside SPARQL's."""
    builtin: Any = sparql.BuiltInCall
    return {
        id(sparql.TriplesBlock): _triples("triples", sparql.TriplesSameSubjectPath),
        id(sparql.TriplesTemplate): _triples("triples", sparql.TriplesSameSubject),
        id(sparql.ConstructTriples): _triples("template", sparql.TriplesSameSubject),
        id(sparql.BuiltInCall): MatchFirst([*map(_time_function, TIME_FUNCTIONS), *builtin.exprs]),
        id(sparql.Expression): expression(sparql.UnaryExpression, sparql.ExpressionList),
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
