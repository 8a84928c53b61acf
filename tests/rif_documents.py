"""What suites ask of RIF documents and a server does not: conditions by themselves, documents that import each other without a profile, and
what the graphs may not hold that rules import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.ir.builtins import RIF
from engine.ir.rules import Formula, Import, RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.terms import RDF
from grammar.rif import elements, presentation, xml
from grammar.rif.elements import read
from grammar.rif.parse import PRESENTATION, REJECTED, conflicts, problems
from grammar.rif.translate import Translator
from grammar.rule_text import Report, Stop


def parse_condition(text: str, media: str, prefixes: Mapping[str, str] | None = None) -> tuple[tuple[Formula, ...], ...]:
    """The bodies of which one must hold for a closed formula; `prefixes` are known beside RIF's own. Raises as `parse_rules` does."""
    report = Report(text.removeprefix("\ufeff"))
    try:
        if media == PRESENTATION:
            reader = presentation.Parser(report, "condition")
            reader.prefixes |= prefixes or {}
            formula = reader.formula()
            reader._end()
        else:
            root, parser = read(report), xml.Parser(report, "condition")
            parser.base = root.attributes.get((elements.XML, "base"))
            formula = parser.formula(root)
    except Stop:
        report.raise_if_any()
        raise
    translator = Translator(report)
    bodies = tuple(translator._safe(conjuncts, ()) for conjuncts in translator.body(formula, {}))
    report.raise_if_any()
    return bodies


def link(main: RuleSet, documents: Mapping[str, RuleSet]) -> RuleSet:
    """A rule set together with the documents that it imports without a profile, and that these import; by IRI in `documents`. Raises
    DiagnosticError where a symbol stands in different contexts, KeyError for a document that is not there."""
    linked, waiting = {"": main}, [main]
    while waiting:
        for imp in waiting.pop().imports:
            if imp.profile is None and imp.iri not in linked:
                linked[imp.iri] = documents[imp.iri]
                waiting.append(documents[imp.iri])
    sets = tuple(linked.values())
    whole = replace(main, rules=tuple(dict.fromkeys(r for s in sets for r in s.rules)), facts=tuple(f for s in sets for f in s.facts),
                    imports=tuple(dict.fromkeys(i for s in sets for i in s.imports if i.profile is not None)))
    if found := [*conflicts(whole), *problems(whole.imports)]:
        raise DiagnosticError(*found)
    return whole


def graph_problems(tokens: Iterable[str], imp: Import) -> list[Diagnostic]:
    """Literals that no graph of a combination may hold: they write what RIF has other constants for (section 3.1.1)."""
    refused = tuple(f"^^<{space}>" for space in (f"{RIF}iri", f"{RIF}local", f"{RDF}PlainLiteral"))
    return [Diagnostic(REJECTED, f"The graph <{imp.iri}> holds {token}, which no graph may that rules import.", imp.span,
                       hint="write the IRI, or the plain literal, itself")
            for token in sorted({token for token in tokens if token.endswith(refused)})]
