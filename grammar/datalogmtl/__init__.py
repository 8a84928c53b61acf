"""DatalogMTL: forward-propagating programs and facts in MeTeoR's notation to rule sets and facts (docs/datalogmtl.md)."""
