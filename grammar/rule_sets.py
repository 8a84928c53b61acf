"""Rule sets by the media type of their text, whatever their language."""

from __future__ import annotations

from engine.ir.rules import RuleSet
from grammar import datalogmtl, lars, rif
from grammar.datalogmtl.reader import Reader
from grammar.lars.reader import RuleReader
from grammar.rule_text import Report


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a text of this type says. Raises DiagnosticError with all that is wrong, ValueError for another type."""
    if media == datalogmtl.MEDIA:
        return datalogmtl.parse_datalogmtl(text, name)
    return lars.parse_lars(text, name) if media == lars.MEDIA else rif.parse_rules(text, media, name)


def prefixes_of(text: str, media: str) -> dict[str, str]:
    """The prefixes that a program of LARS or DatalogMTL declares; one that is right, as parse_rules says."""
    report = Report(text.removeprefix("\ufeff"))
    if media == datalogmtl.MEDIA:
        reader = Reader(report)
        list(reader.clauses())
        return reader.prefixes
    timed = RuleReader(report)
    timed.program()
    return timed.prefixes
