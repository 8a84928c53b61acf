"""What is taken for a Cartesian product: patterns of one conjunction that share no variable, directly or through others."""

from __future__ import annotations

import pytest

from engine.ir.statement import Select
from engine.runtime.statement_checks import _products
from grammar import parse


@pytest.mark.parametrize(("where", "groups"), [
    ("?a ?b ?c . ?c ?d ?e", [1]), ("?a ?b ?c . ?d ?e ?f", [2]), ("?a ?b ?c . ?d ?e ?f . ?c ?g ?d", [1]),
    ("?a ?b ?c OPTIONAL { ?d ?e ?f }", [2]), ("?a <p> ?b BIND (?b AS ?c) ?c <q> ?d", [1]),
    ("GRAPH ?g { ?a <p> ?b } GRAPH ?g { ?c <q> ?d }", [1]), ("{ ?a <p> ?b } UNION { ?c <p> ?d . ?e <p> ?f }", [1, 2]),
    ("?a <p> ?b . ?c <p> ?d FILTER (?b = ?d)", [2]), ("?a <p> ?b . { SELECT ?b ?c WHERE { ?b <q> ?x . ?c <q> ?y } }", [1, 2]),
    ("?a <p>+ ?b . ?c <p> ?d . ?b <q> ?c", [1]), ("?a <p> ?b MINUS { ?c <q> ?d . ?e <q> ?f }", [1, 2]),
    ("VALUES (?a ?c) { (1 2) } ?a <p> ?b . ?c <p> ?d", [1])])
def test_groups_that_share_no_variable(where: str, groups: list[int]) -> None:
    query = parse(f"SELECT * WHERE {{ {where} }}").query
    assert isinstance(query, Select)
    assert sorted(len(found) for found in _products(query.pattern) if found) == groups
