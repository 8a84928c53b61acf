"""Plain LARS: programs of rules with windows, diamond, box and @ to rule sets (docs/lars.md)."""

from grammar.lars.parse import MEDIA, parse_lars

__all__ = ["MEDIA", "parse_lars"]
