"""RSTREAM, ISTREAM and DSTREAM: from the relations at two evaluations to what is logged."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from engine.reference.solutions import Bag
from engine.reference.sparql import Result


def output(operator: str, relation: Result, before: Result | None) -> Result:
    """RSTREAM, ISTREAM or DSTREAM: the relation, or its bag difference with the evaluation before, either way."""
    previous = replace(relation, rows=(), boolean=False, triples=frozenset()) if before is None else before
    if operator == "istream":
        return _difference(relation, previous)
    return _difference(previous, relation) if operator == "dstream" else relation


def _difference(minuend: Result, subtrahend: Result) -> Result:
    if minuend.form == "SELECT":
        return replace(minuend, rows=tuple(_subtract(list(minuend.rows), list(subtrahend.rows))))
    return replace(minuend, boolean=minuend.boolean and not subtrahend.boolean, triples=minuend.triples - subtrahend.triples)


def _subtract(rows: Bag, taken: Bag) -> Bag:
    """The bag difference, order kept."""
    left = Counter(frozenset(row.items()) for row in taken)
    result: Bag = []
    for row in rows:
        key = frozenset(row.items())
        if left[key]:
            left[key] -= 1
        else:
            result.append(row)
    return result
