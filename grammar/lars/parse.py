"""Texts of plain LARS to rule sets."""

from __future__ import annotations

from engine.ir.rules import RuleSet
from grammar.lars.checks import problems
from grammar.lars.reader import RuleReader
from grammar.rule_text import Report

MEDIA = "text/x-lars"


def parse_lars(text: str, name: str) -> RuleSet:
    """The rule set `name` that a LARS program says (docs/lars.md).

    Streams and graphs are its imports, facts hold always or during a granule. Raises DiagnosticError with all that is wrong, in the order
    of the text.
    """
    report = Report(text.removeprefix("\ufeff"))
    reader = RuleReader(report)
    rules, facts, imports = reader.program()
    start = reader.start_at_ms()
    report.diagnostics += problems(rules, reader.tuple_windows)
    report.raise_if_any()
    return RuleSet(name, tuple(rules), tuple(facts), reader.granularity_ms, start, imports)
