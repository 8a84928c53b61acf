"""Plain LARS: programs of rules with windows, diamond, box and @ to rule sets (docs/lars.md)."""
