"""The languages of rules: what their texts are called, and how they are read. Who asks this table needs no language's name
(tests/test_layers.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.ir.rules import RuleSet
from grammar.datalogmtl import MEDIA as DATALOGMTL
from grammar.datalogmtl import parse_datalogmtl, parse_facts
from grammar.datalogmtl.reader import Reader
from grammar.lars import MEDIA as LARS
from grammar.lars import parse_lars
from grammar.lars.reader import RuleReader
from grammar.rif import parse as rif
from grammar.rule_text import Report

__all__ = ["LANGUAGES", "OWN_PROBLEMS", "RULE_EXTENSIONS", "RULE_SET_EXTENSIONS", "RULE_SET_TYPES", "RULE_TYPES", "STATEMENT_LANGUAGES",
           "TIMED_EXTENSIONS", "TIMED_TYPES", "Language", "parse_facts", "parse_rules", "prefixes_of"]

STATEMENT_LANGUAGES = ("csparql", "rsp-ql")
"""What queries may be written in beside SPARQL."""
OWN_PROBLEMS: Mapping[str, str] = {"rif-feature-not-core": "The rules are not RIF-Core",
                                   "rif-import-rejected": "A document cannot be imported so"}
"""Codes of diagnostics that one language alone has, and what they mean."""


@dataclass(frozen=True, slots=True)
class Language:
    """A syntax of a language of rules. `begins` is what its texts begin with, for people. `prefixes` reads those that a right text
    declares; with it are languages whose programs have a time of their own, and files of facts."""

    name: str
    media: str
    extensions: tuple[str, ...]
    parse: Callable[[str, str], RuleSet]
    begins: str = ""
    prefixes: Callable[[str], dict[str, str]] | None = None


def _metric_prefixes(text: str) -> dict[str, str]:
    reader = Reader(Report(text.removeprefix("\ufeff")))
    list(reader.clauses())
    return reader.prefixes


def _window_prefixes(text: str) -> dict[str, str]:
    reader = RuleReader(Report(text.removeprefix("\ufeff")))
    reader.program()
    return reader.prefixes


LANGUAGES = (
    Language("rif-core", rif.PRESENTATION, (".rifps",), lambda text, name: rif.parse_rules(text, rif.PRESENTATION, name), "Document("),
    Language("rif-core", rif.XML, (".rif", ".xml"), lambda text, name: rif.parse_rules(text, rif.XML, name), "an element"),
    Language("lars", LARS, (".lars",), parse_lars, prefixes=_window_prefixes),
    Language("datalogmtl", DATALOGMTL, (".dmtl", ".datalogmtl"), parse_datalogmtl, prefixes=_metric_prefixes),
)

BY_MEDIA = {language.media: language for language in LANGUAGES}
RULE_TYPES = tuple(language.media for language in LANGUAGES if language.prefixes is None)
"""The types of rule programs whose texts tell what they are."""
TIMED_TYPES = tuple(language.media for language in LANGUAGES if language.prefixes is not None)
"""The types of programs with a time of their own. Their texts do not tell which of them they are."""
RULE_SET_TYPES = RULE_TYPES + TIMED_TYPES
"""The types of rule sets."""
RULE_EXTENSIONS = {end: language.media for language in LANGUAGES if language.prefixes is None for end in language.extensions}
TIMED_EXTENSIONS = {end: language.media for language in LANGUAGES if language.prefixes is not None for end in language.extensions}
"""The types of files by the ends of their names: of rule programs, and of those with a time of their own."""
RULE_SET_EXTENSIONS = {**RULE_EXTENSIONS, **TIMED_EXTENSIONS}
"""The same of rule sets."""


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a text of this type says. Raises DiagnosticError with all that is wrong, ValueError for another type."""
    if media not in BY_MEDIA:
        raise ValueError(f"not a type of rule documents: {media}")
    return BY_MEDIA[media].parse(text, name)


def prefixes_of(text: str, media: str) -> dict[str, str]:
    """The prefixes that a program with a time of its own declares; one that is right, as parse_rules says."""
    read = BY_MEDIA[media].prefixes
    return read(text) if read is not None else {}
