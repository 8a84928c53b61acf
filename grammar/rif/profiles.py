"""What a document imports: profiles of RDF graphs (RIF RDF and OWL Compatibility, section 5.1), and what speaks against an import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.ir.builtins import RIF
from engine.ir.expressions import Call, Expression
from engine.ir.rules import OWL_DIRECT, OWL_RL, RANKS, RDFS_PROFILE, SIMPLE, STREAM, TRIPLE, Assign, Atom, Import, RuleSet, Test, atoms
from engine.ir.spans import Diagnostic, Span
from engine.ir.terms import RDF, Constant

REJECTED = "rif-import-rejected"


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
    """Symbols that stand in different contexts in documents that belong together (RIF-BLD section 2.3: each in at most one).

    A context is: an individual, a predicate of so many arguments, a built-in.
    """
    seen: dict[str, str] = {}
    found: dict[str, Diagnostic] = {}
    for rule_set in rule_sets:
        for token, context, span in _symbols(rule_set):
            before = seen.setdefault(token, context)
            if before != context and token not in found:
                found[token] = Diagnostic("rule-syntax", f"{token} is {context} here, and {before} elsewhere.", span,
                                          hint="give each its own name")
    return list(found.values())


def _symbols(rule_set: RuleSet) -> Iterable[tuple[str, str, Span | None]]:
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


def _atom_symbols(atom: Atom) -> Iterable[tuple[str, str, Span | None]]:
    if atom.predicate != TRIPLE:
        count = len(atom.terms)
        yield atom.predicate, f"a predicate of {count} argument{'s' * (count != 1)}", atom.span
    for term in atom.terms:
        if isinstance(term, Constant) and term.token.startswith("<"):
            yield term.token, "an individual", atom.span


def _call_symbols(expression: Expression, span: Span | None) -> Iterable[tuple[str, str, Span | None]]:
    if isinstance(expression, Constant) and expression.token.startswith("<"):
        yield expression.token, "an individual", span
    if isinstance(expression, Call):
        yield expression.function, "a built-in", expression.span or span
        for arg in expression.args:
            yield from _call_symbols(arg, expression.span or span)
