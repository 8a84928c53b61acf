"""Rule sets by the media type of their text, whatever their language."""

from __future__ import annotations

from engine.ir.rules import RuleSet
from grammar import lars, rif


def parse_rules(text: str, media: str, name: str) -> RuleSet:
    """The rule set `name` that a text of this type says. Raises DiagnosticError with all that is wrong, ValueError for another type."""
    return lars.parse_lars(text, name) if media == lars.MEDIA else rif.parse_rules(text, media, name)
