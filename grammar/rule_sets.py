"""The languages of rules: what their texts are called, and how they are read. Who asks this table needs no language's name
(tests/test_layers.py). And rule programs as queries of their own: a Streaming RIF-Core document that imports the streams it reads
(docs/rules.md)."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.ir.programs import columns
from engine.ir.rules import STREAM, Atom, Import, RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import GraphSource, Program, Statement, StreamSource, TimeWindow
from grammar.datalog.reader import Reader
from grammar.datalogmtl import parse as metric
from grammar.datalogmtl.reader import Reader as MetricReader
from grammar.lars.parse import MEDIA as LARS, RuleReader, parse_lars
from grammar.rif import parse as rif
from grammar.rule_text import Report

STATEMENT_LANGUAGES = ("csparql", "rsp-ql")
"""What queries may be written in beside SPARQL."""
OWN_PROBLEMS: Mapping[str, str] = {"rif-feature-not-core": "The rules are not RIF-Core",
                                   "rif-import-rejected": "A document cannot be imported so"}
"""Codes of diagnostics that one language alone has, and what they mean."""


@dataclass(frozen=True, slots=True)
class Language:
    """A syntax of a language of rules. `begins` is what its texts begin with, for people. `reader` reads texts of languages
    whose programs have a time of their own, and files of facts."""

    name: str
    media: str
    extensions: tuple[str, ...]
    parse: Callable[[str, str], RuleSet]
    begins: str = ""
    reader: type[Reader] | None = None


LANGUAGES = (
    Language("rif-core", rif.PRESENTATION, (".rifps",), lambda text, name: rif.parse_rules(text, rif.PRESENTATION, name), "Document("),
    Language("rif-core", rif.XML, (".rif", ".xml"), lambda text, name: rif.parse_rules(text, rif.XML, name), "an element"),
    Language("lars", LARS, (".lars",), parse_lars, reader=RuleReader),
    Language("datalogmtl", metric.MEDIA, (".dmtl", ".datalogmtl"), metric.parse_datalogmtl, reader=MetricReader),
)

BY_MEDIA = {language.media: language for language in LANGUAGES}
RULE_TYPES = tuple(language.media for language in LANGUAGES if language.reader is None)
"""The types of rule programs whose texts tell what they are."""
TIMED_TYPES = tuple(language.media for language in LANGUAGES if language.reader is not None)
"""The types of programs with a time of their own. Their texts do not tell which of them they are."""
RULE_SET_TYPES = RULE_TYPES + TIMED_TYPES
"""The types of rule sets."""
TIMED_EXTENSIONS = {end: language.media for language in LANGUAGES if language.reader is not None for end in language.extensions}
RULE_SET_EXTENSIONS = {end: language.media for language in LANGUAGES for end in language.extensions}
"""The types of files by the ends of their names: of rule programs with a time of their own, and of rule sets."""
parse_facts = metric.parse_facts


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a text of this type says. Raises DiagnosticError with all that is wrong, ValueError for another type."""
    if media not in BY_MEDIA:
        raise ValueError(f"not a type of rule documents: {media}")
    if not text.removeprefix("\ufeff").strip():
        raise DiagnosticError(Diagnostic("rule-syntax", "The text is empty.", hint="A rule set that says nothing is a comment."))
    return BY_MEDIA[media].parse(text, name)


def prefixes_of(text: str, media: str) -> dict[str, str]:
    """The prefixes that a program with a time of its own declares; one that is right, as parse_rules says."""
    if (reader_of := BY_MEDIA[media].reader) is None:
        return {}
    reader = reader_of(Report(text.removeprefix("\ufeff")))
    list(reader.clauses())
    return reader.prefixes


def media_of(text: str) -> str | None:
    """The media type of a text if it is a rule document: no statement begins with ``Document``, an annotation or ``<``."""
    start = text.removeprefix("\ufeff").lstrip()
    if start.startswith("<"):
        return rif.XML
    return rif.PRESENTATION if start.startswith(("Document", "(*")) else None


def parse_program(text: str, media: str) -> Statement:
    """A rule document of a type of grammar.rif as a continuous query; raises DiagnosticError. It reads the streams that it imports, each
    through its ``Window``, and knows the graphs that it imports. Local constants belong to the text."""
    rules = rif.parse_rules(text, media, f"program-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    streams = [imp for imp in rules.imports if imp.profile == STREAM]
    if found := _refused(rules, streams):
        raise DiagnosticError(*found)
    window_ms = next(rule.window_ms for rule in rules.rules if rule.window_ms is not None)
    program = Program(rules, rif.strongest(rules.imports), columns(rules))
    return Statement(program, text, dialect="rif", output="istream", report="change",
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
