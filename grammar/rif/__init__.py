"""RIF-Core and Streaming RIF-Core: rule documents in presentation syntax or RIF/XML to rule sets (docs/rules.md)."""
