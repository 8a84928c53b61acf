"""IR -> IR: what rules and the query's shape go through, one file for each pass; EXPLAIN shows the rules before and after each.

- `partial`: what rules ask of the schema becomes tables of constants;
- `reflexive`: that each term is equal to itself goes into the rules that read it;
- `relevance`: rules and rows by which nothing can follow that the query asks go;
- `unfold`: rules that allow it become patterns of the query, and none is left;
- `magic`: of what is left only that is derived which leads to terms that the query names; closures are made of it (engine/plan/dataset.py);
- `equality`: whether equal terms may stand for each other while these rules are applied;
- `unique_names`: which of them matter while no property or class that the query names is equal to another term.

Each may be left out (`compile_statement`), and answers are the same: a treatment of every case (tests/treatments.py).
"""

PASSES = ("partial", "reflexive", "relevance", "unfold", "magic", "equality", "unique_names")
"""The names of the passes, in order."""

__all__ = ["PASSES"]
