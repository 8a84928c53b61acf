"""Texts of rules to rule sets: the one entrance for both syntaxes, and the linking of documents that import each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.ir.rules import OF_SUBCLASSES, TRIPLE, Atom, Fact, Formula, Rule, RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.terms import RDF_TYPE, Constant, Variable
from grammar.rif import presentation, xml
from grammar.rif.profiles import conflicts, problems
from grammar.rif.syntax import Document
from grammar.rule_text import Report, Stop
from grammar.rif.translate import SUBCLASS, Translator

PRESENTATION = "text/x-rif-ps"
XML = "application/rif+xml"
MEDIA = (PRESENTATION, XML)


def parse_rules(text: str, media: str, name: str, base: str | None = None) -> RuleSet:
    """The rule set `name` that a document of one of the types MEDIA says.

    `base` resolves relative IRIs where the document has no base of its own; local constants (``_x``, rif:local) belong to `name`.
    Raises DiagnosticError with all that is wrong, in the order of the text; ValueError for another media type.
    """
    report = Report(text.removeprefix("\ufeff"))
    try:
        document = _parser(report, media, name, base).document_()
    except Stop:
        report.raise_if_any()
        raise
    report.diagnostics += problems(document.imports)
    rule_set = _rule_set(document, name, report)
    report.raise_if_any()
    return rule_set


def parse_condition(text: str, media: str, name: str = "condition", base: str | None = None,
                    prefixes: Mapping[str, str] | None = None) -> tuple[tuple[Formula, ...], ...]:
    """A closed formula by itself: the bodies of which one must hold. `prefixes` (name to namespace) are known beside RIF's own.

    Raises as `parse_rules` does.
    """
    report = Report(text.removeprefix("\ufeff"))
    try:
        parser = _parser(report, media, name, base)
        if isinstance(parser, presentation.Parser):
            parser.prefixes |= prefixes or {}
        formula = parser.condition()
    except Stop:
        report.raise_if_any()
        raise
    bodies = Translator(report).condition(formula)
    report.raise_if_any()
    return tuple(bodies)


def link(main: RuleSet, documents: Mapping[str, RuleSet]) -> RuleSet:
    """A rule set together with the documents that it imports without a profile, and that these import; by IRI in `documents`.

    Raises DiagnosticError where a symbol stands in different contexts, KeyError for a document that is not there.
    """
    linked, waiting = {"": main}, [main]
    while waiting:
        for imp in waiting.pop().imports:
            if imp.profile is None and imp.iri not in linked:
                linked[imp.iri] = documents[imp.iri]
                waiting.append(documents[imp.iri])
    found = [*conflicts(tuple(linked.values())), *problems(imp for s in linked.values() for imp in s.imports)]
    if found:
        raise DiagnosticError(*found)
    sets = tuple(linked.values())
    return replace(main, rules=tuple(dict.fromkeys(r for s in sets for r in s.rules)), facts=tuple(f for s in sets for f in s.facts),
                   imports=tuple(dict.fromkeys(i for s in sets for i in s.imports if i.profile is not None)))


def _parser(report: Report, media: str, name: str, base: str | None) -> presentation.Parser | xml.Parser:
    if media not in MEDIA:
        raise ValueError(f"not a type of rule documents: {media}")
    try:
        return (presentation.Parser if media == PRESENTATION else xml.Parser)(report, name, base)
    except Stop:
        report.raise_if_any()
        raise


def _rule_set(document: Document, name: str, report: Report) -> RuleSet:
    rules: list[Rule] = []
    facts: list[Fact] = []
    for clause in document.clauses:
        for found in Translator(report).clause(clause, document.window_ms):
            if isinstance(found, Fact):
                facts.append(found)
            else:
                rules.append(found)
    if any(isinstance(f, Atom) and f.predicate == TRIPLE and f.terms[1] == Constant(SUBCLASS) for r in rules for f in r.body):
        rules += _of_subclasses(document.window_ms)
    rule_set = RuleSet(name, tuple(rules), tuple(facts), imports=document.imports, window_span=document.window_span)
    if not report.diagnostics:
        report.diagnostics += conflicts((rule_set,))
    return rule_set


def _of_subclasses(window_ms: int | None) -> tuple[Rule, Rule]:
    """What ``##`` means to RIF (RIF-BLD section 3.2): it is transitive, and members of a class are members of what stands above."""
    member, below = Constant(RDF_TYPE), Constant(SUBCLASS)
    x, y, z = map(Variable, "xyz")
    above, inherited = OF_SUBCLASSES
    return (Rule(Atom(TRIPLE, (x, below, z)), (Atom(TRIPLE, (x, below, y)), Atom(TRIPLE, (y, below, z))), above, window_ms,
                 role="built-in"),
            Rule(Atom(TRIPLE, (x, member, z)), (Atom(TRIPLE, (x, member, y)), Atom(TRIPLE, (y, below, z))), inherited, window_ms,
                 role="built-in"))
