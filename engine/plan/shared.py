"""Relations that are derived alike are one: ``q1(x) <- diamond-minus[0s,5s] p(x)`` and ``q2(x) <- diamond-minus[0s,5s] p(x)`` hold the same
rows, so one table has them. This holds as long as no fact of the one or the other comes in besides (engine/worker/program.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

from engine.plan import intervals as plan


def shared(program: plan.Program) -> tuple[plan.Program, dict[str, str]]:
    """The program with one relation for all those that are derived alike, and by which relation each of the others is read.

    Recursive relations, and those of atoms that become known late, stay as they are. What reads relations that are one may itself be one.
    """
    of: dict[str, str] = {}
    made: dict[Hashable, str] = {}
    late = {name for pair in program.late for name in pair}
    strata = []
    for stratum in program.strata:
        relations = [replace(r, derivations=tuple(replace(d, input=_renamed(d.input, of), delta=of.get(d.delta, d.delta))
                                                  for d in r.derivations)) for r in stratum.relations]
        if not stratum.recursive:
            for relation in relations:
                if relation.derivations and relation.name not in late:
                    key = relation.arity, relation.keep, frozenset((d.terms, d.input, d.delta, d.part) for d in relation.derivations)
                    first = made.setdefault(key, relation.name)
                    if first != relation.name:
                        of[relation.name] = first
        left = tuple(relation for relation in relations if relation.name not in of)
        if left:
            strata.append(replace(stratum, relations=left))
    return replace(program, strata=tuple(strata)), of


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A node that reads relations by other names."""
    if isinstance(node, plan.Scan):
        return replace(node, relation=names.get(node.relation, node.relation))
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if isinstance(node, plan.NODES):
        return replace(node, **{field.name: _renamed(getattr(node, field.name), names) for field in fields(node)})
    return node
