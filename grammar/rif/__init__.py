"""RIF-Core: texts of rules to IR."""
