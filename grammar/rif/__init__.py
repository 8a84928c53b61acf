"""RIF-Core and Streaming RIF-Core: rule documents in presentation syntax or RIF/XML to rule sets (docs/rules.md)."""

from grammar.rif.parse import MEDIA, link, parse_condition, parse_rules

__all__ = ["MEDIA", "link", "parse_condition", "parse_rules"]
