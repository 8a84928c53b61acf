"""SPARQL 1.1 functions, operators and aggregates on canonical N-Triples tokens, in plain Python.

The reference evaluator and the workers' Arrow UDFs run this same code, so imports are light: the standard library and `engine.ir`
(`typed` alone needs pyarrow). Errors of SPARQL (section 17.2) are `context.ExpressionError`; unbound is None or an absent key.
"""
