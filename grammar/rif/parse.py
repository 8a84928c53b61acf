"""Texts of rules to rule sets: the one entrance for both syntaxes, what a document may import (profiles of RDF graphs: RIF RDF and OWL
Compatibility, section 5.1), and the linking of documents that import each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.ir.builtins import RIF
from engine.ir.expressions import Call, Expression
from engine.ir.rules import (OF_SUBCLASSES, OWL_DIRECT, OWL_RL, RANKS, RDFS_PROFILE, SIMPLE, STREAM, TRIPLE, Assign, Atom, Fact, Formula,
                             Import, Rule, RuleSet, Test, atoms)
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.terms import RDF, RDF_TYPE, Constant, Variable
from grammar.rif import presentation, xml
from grammar.rif.syntax import Document
from grammar.rif.translate import SUBCLASS, Translator
from grammar.rule_text import Report, Stop

PRESENTATION = "text/x-rif-ps"
XML = "application/rif+xml"
MEDIA = (PRESENTATION, XML)
REJECTED = "rif-import-rejected"


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a document of one of the types MEDIA says; local constants (``_x``, rif:local) belong to `name`. Raises
    DiagnosticError with all that is wrong, in the order of the text; ValueError for another media type."""
    report = Report(text.removeprefix("\ufeff"))
    try:
        document = _parser(report, media, name).document_()
    except Stop:
        report.raise_if_any()
        raise
    report.diagnostics += problems(document.imports)
    rule_set = _rule_set(document, name, report)
    report.raise_if_any()
    return rule_set


def parse_condition(text: str, media: str, prefixes: Mapping[str, str] | None = None) -> tuple[tuple[Formula, ...], ...]:
    """The bodies of which one must hold for a closed formula; `prefixes` are known beside RIF's own. Raises as `parse_rules` does."""
    report = Report(text.removeprefix("\ufeff"))
    try:
        parser = _parser(report, media, "condition")
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
    """A rule set together with the documents that it imports without a profile, and that these import; by IRI in `documents`. Raises
    DiagnosticError where a symbol stands in different contexts, KeyError for a document that is not there."""
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


def _parser(report: Report, media: str, name: str) -> presentation.Parser | xml.Parser:
    if media not in MEDIA:
        raise ValueError(f"not a type of rule documents: {media}")
    return (presentation.Parser if media == PRESENTATION else xml.Parser)(report, name)


def _rule_set(document: Document, name: str, report: Report) -> RuleSet:
    found = [part for clause in document.clauses for part in Translator(report).clause(clause, document.window_ms)]
    rules, facts = [part for part in found if isinstance(part, Rule)], [part for part in found if isinstance(part, Fact)]
    if any(isinstance(f, Atom) and f.predicate == TRIPLE and f.terms[1] == Constant(SUBCLASS) for r in rules for f in r.body):
        rules += _of_subclasses(document.window_ms)
    rule_set = RuleSet(name, tuple(rules), tuple(facts), imports=document.imports, window_span=document.window_span)
    report.diagnostics += [] if report.diagnostics else conflicts((rule_set,))
    return rule_set


def _of_subclasses(window_ms: int | None) -> Iterator[Rule]:
    """What ``##`` means to RIF (RIF-BLD section 3.2): it is transitive, and members of a class are members of what stands above."""
    x, y, z = map(Variable, "xyz")
    below = Constant(SUBCLASS)
    for link, name in zip((below, Constant(RDF_TYPE)), OF_SUBCLASSES):
        body = Atom(TRIPLE, (x, link, y)), Atom(TRIPLE, (y, below, z))
        yield Rule(Atom(TRIPLE, (x, link, z)), body, name, window_ms, role="built-in")


def problems(imports: Iterable[Import]) -> list[Diagnostic]:
    """Imports that are refused: profiles that are not known, and such as cannot hold together."""
    found = []
    graphs = [imp for imp in imports if imp.profile is not None and imp.profile != STREAM]
    for imp in graphs:
        if imp.profile == OWL_DIRECT:
            others = sorted({str(g.profile) for g in graphs} - {OWL_DIRECT})
            note = f"beside it stands {', '.join(f'<{o}>' for o in others)}, and neither profile includes the other" if others else None
            found.append(Diagnostic(REJECTED, "The profile OWL-Direct is not supported.", imp.span, note,
                                    f"import the graph under OWL 2 RL: <{OWL_RL}>"))
        elif imp.profile not in RANKS:
            found.append(Diagnostic(REJECTED, f"<{imp.profile}> is no profile that is known here.", imp.span,
                                    hint=f"known are <{SIMPLE}>, ... <{RDFS_PROFILE}>, <{OWL_RL}>"))
    return found


def strongest(imports: Iterable[Import]) -> str | None:
    """The profile that holds for all imported graphs; None where none is imported."""
    return max((imp.profile for imp in imports if imp.profile in RANKS), key=lambda p: RANKS[p], default=None)


def graph_problems(tokens: Iterable[str], imp: Import) -> list[Diagnostic]:
    """Literals that no graph of a combination may hold: they write what RIF has other constants for (section 3.1.1)."""
    refused = tuple(f"^^<{space}>" for space in (f"{RIF}iri", f"{RIF}local", f"{RDF}PlainLiteral"))
    return [Diagnostic(REJECTED, f"The graph <{imp.iri}> holds {token}, which no graph may that rules import.", imp.span,
                       hint="write the IRI, or the plain literal, itself")
            for token in sorted({token for token in tokens if token.endswith(refused)})]


def conflicts(rule_sets: Sequence[RuleSet]) -> list[Diagnostic]:
    """Symbols that stand in different contexts in documents that belong together (RIF-BLD section 2.3: each in at most one). A context is:
    an individual, a predicate of so many arguments, a built-in."""
    seen: dict[str, str] = {}
    found: dict[str, Diagnostic] = {}
    for rule_set in rule_sets:
        for token, context, span in _symbols(rule_set):
            before = seen.setdefault(token, context)
            if before != context and token not in found:
                found[token] = Diagnostic("rule-syntax", f"{token} is {context} here, and {before} elsewhere.", span,
                                          hint="give each its own name")
    return list(found.values())


def _symbols(rule_set: RuleSet) -> Iterator[tuple[str, str, Span | None]]:
    for fact in rule_set.facts:
        yield from _atom_symbols(fact.atom)
    for rule in rule_set.rules:
        for atom in atoms(rule.head):
            yield from _atom_symbols(atom)
        for formula in rule.body:
            for atom in atoms(formula):
                yield from _atom_symbols(atom)
            if isinstance(formula, Test):
                yield from _call_symbols(formula.condition, rule.span)
            elif isinstance(formula, Assign):
                yield from _call_symbols(formula.expression, rule.span)


def _atom_symbols(atom: Atom) -> Iterator[tuple[str, str, Span | None]]:
    if atom.predicate != TRIPLE:
        count = len(atom.terms)
        yield atom.predicate, f"a predicate of {count} argument{'s' * (count != 1)}", atom.span
    for term in atom.terms:
        if isinstance(term, Constant) and term.token.startswith("<"):
            yield term.token, "an individual", atom.span


def _call_symbols(expression: Expression, span: Span | None) -> Iterator[tuple[str, str, Span | None]]:
    if isinstance(expression, Constant) and expression.token.startswith("<"):
        yield expression.token, "an individual", span
    if isinstance(expression, Call):
        yield expression.function, "a built-in", expression.span or span
        for arg in expression.args:
            yield from _call_symbols(arg, expression.span or span)
