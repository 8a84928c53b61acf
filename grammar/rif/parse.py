"""Texts of rules to rule sets: the one entrance for both syntaxes, and what a document may import (profiles of RDF graphs: RIF RDF and OWL
Compatibility, section 5.1)."""

from collections.abc import Iterable, Iterator

from engine.ir.expressions import Call, Expression
from engine.ir.rules import (OF_SUBCLASSES, OWL_DIRECT, OWL_RL, RANKS, RDFS_PROFILE, SIMPLE, STREAM, TRIPLE, Assign, Atom, Fact,
                             Import, Rule, RuleSet, Test, atoms)
from engine.ir.spans import Diagnostic, Span
from engine.ir.terms import RDF_TYPE, Constant, Variable
from grammar.rif import presentation, xml
from grammar.rif.syntax import Document
from grammar.rif.translate import SUBCLASS, Translator
from grammar.rule_text import Report, Stop

PRESENTATION = "text/x-rif-ps"
XML = "application/rif+xml"
_PARSERS = {PRESENTATION: presentation.Parser, XML: xml.Parser}
REJECTED = "rif-import-rejected"


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a document of one of these two types says; local constants (``_x``, rif:local) belong to `name`. Raises
    DiagnosticError with all that is wrong, in the order of the text."""
    report = Report(text.removeprefix("\ufeff"))
    try:
        document = _PARSERS[media](report, name).document_()
    except Stop:
        report.raise_if_any()
        raise
    report.diagnostics += problems(document.imports)
    rule_set = _rule_set(document, name, report)
    report.raise_if_any()
    return rule_set


def _rule_set(document: Document, name: str, report: Report) -> RuleSet:
    found = [part for clause in document.clauses for part in Translator(report).clause(clause, document.window_ms)]
    rules, facts = [part for part in found if isinstance(part, Rule)], [part for part in found if isinstance(part, Fact)]
    if any(isinstance(f, Atom) and f.predicate == TRIPLE and f.terms[1] == Constant(SUBCLASS) for r in rules for f in r.body):
        rules += _of_subclasses(document.window_ms)
    rule_set = RuleSet(name, tuple(rules), tuple(facts), imports=document.imports, window_span=document.window_span)
    report.diagnostics += [] if report.diagnostics else conflicts(rule_set)
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


def conflicts(rule_set: RuleSet) -> list[Diagnostic]:
    """Symbols that stand in different contexts (RIF-BLD section 2.3: each in at most one). A context is: an individual, a predicate of so
    many arguments, a built-in."""
    seen: dict[str, str] = {}
    found: dict[str, Diagnostic] = {}
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
        for formula in (rule.head, *rule.body):
            for atom in atoms(formula):
                yield from _atom_symbols(atom)
            match formula:
                case Test(condition=expression) | Assign(expression=expression):
                    yield from _call_symbols(expression, rule.span)


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
