"""What the languages of rules with atoms ``p(X, a)`` share (LARS, DatalogMTL): tokens, terms, atoms, sources, comparisons, safety."""
