"""DatalogMTL: forward-propagating programs and facts in MeTeoR's notation to rule sets and facts (docs/datalogmtl.md)."""

from grammar.datalogmtl.parse import MEDIA, parse_datalogmtl, parse_facts

__all__ = ["MEDIA", "parse_datalogmtl", "parse_facts"]
