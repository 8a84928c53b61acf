"""Rule programs as queries of their own: a Streaming RIF-Core document that imports the streams it reads (docs/rules.md)."""

from __future__ import annotations

import hashlib

from engine.ir.programs import columns
from engine.ir.rules import STREAM, Atom, Import, RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import GraphSource, Program, Statement, StreamSource, TimeWindow
from grammar.rif.parse import PRESENTATION, XML, parse_rules
from grammar.rif.profiles import strongest


def media_of(text: str) -> str | None:
    """The media type of a text if it is a rule document: no statement begins with ``Document``, an annotation or ``<``."""
    start = text.removeprefix("\ufeff").lstrip()
    if start.startswith("<"):
        return XML
    return PRESENTATION if start.startswith(("Document", "(*")) else None


def parse_program(text: str, media: str) -> Statement:
    """A rule document of one of the types of grammar.rif as a continuous query; raises DiagnosticError with all that is wrong.

    It reads the streams that it imports, each through the document's ``Window``, and knows the graphs that it imports. Local constants
    belong to the text.
    """
    rules = parse_rules(text, media, f"program-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    streams = [imp for imp in rules.imports if imp.profile == STREAM]
    found = [*_refused(rules, streams)]
    if found:
        raise DiagnosticError(*found)
    window_ms = next(rule.window_ms for rule in rules.rules if rule.window_ms is not None)
    program = Program(rules, strongest(rules.imports), columns(rules))
    return Statement(
        program, text, dialect="rif", output="istream", report="change",
        streams=tuple(StreamSource(imp.iri, TimeWindow(window_ms, window_ms), span=imp.span) for imp in streams),
        graphs=tuple(GraphSource(imp.iri, span=imp.span) for imp in rules.imports if imp.profile not in (STREAM, None)))


def _refused(rules: RuleSet, streams: list[Import]) -> list[Diagnostic]:
    found = [Diagnostic("unsupported-in-streaming", f"A program cannot import another document, <{imp.iri}>.", imp.span,
                        hint="put its rules into this one")
             for imp in rules.imports if imp.profile is None]
    if not any(isinstance(rule.head, Atom) for rule in rules.rules):
        found.append(Diagnostic("rule-syntax", "The program has no rule, so nothing would ever come out of it."))
    elif all(rule.window_ms is None for rule in rules.rules):
        found.append(Diagnostic("window-unbounded", "The program has no Window: it would keep every event.",
                                hint="write for instance  Window 10 s  behind the imports"))
    if not streams:
        found.append(Diagnostic("window-unbounded", "The program imports no stream.", rules.imports[-1].span if rules.imports else None,
                                hint=f"write  Import(<the stream's IRI> <{STREAM}>)"))
    return found
