"""A compact notation in which the tables of entailment rules are written, one rule a line.

>>> from engine.ir.notation import show_rule
>>> rules = rule_table("prp-symp  ?p a SymmetricProperty, ?x ?p ?y => ?y ?p ?x", {})
>>> show_rule(rules["prp-symp"][0], str)  # doctest: +ELLIPSIS
'prp-symp: [?y ?p ?x] <- [?p a <...owl#SymmetricProperty>], [?x ?p ?y] .  # prp-symp'

``body => head ; head``: parts of a body are divided by commas, several heads are several rules of one name.

- ``?s p ?o`` is a triple; a bare name is one of OWL's, ``a`` is rdf:type, ``rdf:``, ``rdfs:`` and ``xsd:`` are prefixes.
- ``name(?x ?y)`` is an atom that is no triple.
- ``?x in NAME`` is the table of one column that `tables` has for the name.
- ``?x != ?y`` (other terms), ``literal ?x``, ``resource ?x`` (no literal), ``f(?x) != f(?y)``, ``f(?x ?y)`` and ``not f(?x ?y)``
  are tests, ``?k := f(?x)`` binds; `f` is one of the words of FUNCTIONS.
- ``false`` is the head of an inconsistency.
"""

import re
from collections.abc import Mapping

from engine.ir.expressions import Call, Expression
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Rule, Table, Test
from engine.ir.strata import VALUE
from engine.ir.terms import RDF, RDF_TYPE, RDFS, XSD, Constant, Term, Variable

OWL = "http://www.w3.org/2002/07/owl#"
PREFIXES = {"": OWL, "rdf": RDF, "rdfs": RDFS, "xsd": XSD}
IN_VALUE_SPACE = "<urn:thalweg:in-value-space>"
"""Two functions of engine/functions/datatypes.py: the one literal that stands for all of its value; whether a datatype has its value."""
FUNCTIONS = {"value": VALUE, "in-value-space": IN_VALUE_SPACE}

_CALL = re.compile(r"([\w-]+)\(([^()]*)\)")


def rule_table(text: str, tables: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[Rule, ...]]:
    """The rules of a text by their names, in its order. Raises ValueError for a line that is none of the forms."""
    found: dict[str, tuple[Rule, ...]] = {}
    for line in filter(None, map(str.strip, text.replace("\\\n", " ").splitlines())):
        name, _, rest = line.partition(" ")
        body, arrow, heads = rest.partition("=>")
        if not arrow:
            raise ValueError(f"no rule: {line}")
        formulas = tuple(_formula(part.strip(), tables) for part in body.split(",") if part.strip())
        derived = [Falsum() if head.strip() == "false" else _atom(head.strip()) for head in heads.split(";")]
        origin = tuple(name.split("+"))
        found[name] = found.get(name, ()) + tuple(Rule(head, formulas, name, origin=origin, role="built-in") for head in derived)
    return found


def iri(name: str) -> str:
    """The token of a name: ``subClassOf`` of OWL's, ``rdfs:domain`` of another vocabulary."""
    prefix, _, local = name.rpartition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def term(word: str) -> Term:
    """A variable or a constant."""
    if word.startswith("?"):
        return Variable(word[1:])
    return Constant(RDF_TYPE if word == "a" else iri(word))


def _atom(text: str) -> Atom:
    call = _CALL.fullmatch(text)
    if call:
        return Atom(call[1], tuple(map(term, call[2].split())))
    return Atom(TRIPLE, tuple(map(term, text.split())))


def _formula(text: str, tables: Mapping[str, tuple[str, ...]]) -> Formula:
    match text.replace("(", " ( ").split():
        case [variable, "in", name]:
            return Table((Variable(variable[1:]),), tuple((Constant(token),) for token in tables[name]))
        case ["literal", word]:
            return Test(Call("ISLITERAL", (term(word),)))
        case ["resource", word]:
            return Test(Call("!", (Call("ISLITERAL", (term(word),)),)))
        case ["not", *_]:
            return Test(Call("!", (_expression(text.removeprefix("not ")),)))
        case [variable, ":=", *_]:
            return Assign(Variable(variable[1:]), _expression(text.partition(":= ")[2]))
        case [function, "(", *_] if function in FUNCTIONS and "!=" not in text:
            return Test(_expression(text))
    left, differs, right = text.partition(" != ")
    if differs:
        return Test(Call("!", (Call("SAMETERM", (_expression(left), _expression(right))),)))
    return _atom(text)


def _expression(text: str) -> Expression:
    call = _CALL.fullmatch(text.strip())
    return Call(FUNCTIONS[call[1]], tuple(map(term, call[2].split()))) if call else term(text.strip())
