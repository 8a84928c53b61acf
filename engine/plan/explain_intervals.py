"""A plan over interval relations as text: relations by stratum, each with how it is derived; one line for each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from engine.ir.notation import Expressions, duration, interval as show_interval, term
from engine.ir.printer import show_group
from engine.plan import intervals as plan
from engine.plan.shared import shared
from engine.timeline import Interval


def explain(program: plan.Program) -> str:
    """The plan; what is read since the last round is not told, it is as what is new."""
    lines = []
    _, same = shared(program)
    for number, stratum in enumerate(program.strata, 1):
        lines.append(f"stratum {number}{', in rounds' if stratum.recursive else ''}")
        for relation in stratum.relations:
            if relation.name in same:
                lines.append(f"  {relation.name} (as {same[relation.name]}: one table has both)")
                continue
            lines.append(f"  {relation.name}{'' if relation.derivations else ' (input)'}")
            for derivation in relation.derivations:
                if derivation.part == "new":
                    lines.append(f"    ({', '.join(map(term, derivation.terms))}) <-")
                    lines += [f"      {line}" for line in _lines(derivation.input)]
    return "\n".join(lines) + "\n"


def tree(program: plan.Program) -> dict[str, Any]:
    """The plan as nested ``{"node", "label", "inputs"}``: strata, their relations, how each is derived."""
    return {"node": "Program", "label": f"Program of {len(program.relations)} relations", "inputs": [
        {"node": "Stratum", "label": f"stratum {number}{', in rounds' if stratum.recursive else ''}", "inputs": [
            {"node": "Relation", "label": relation.name, "inputs": [_tree(d.input) for d in relation.derivations if d.part == "new"]}
            for relation in stratum.relations]}
        for number, stratum in enumerate(program.strata, 1)]}


def _tree(node: plan.Node) -> dict[str, Any]:
    return {"node": type(node).__name__, "label": _headline(node), "inputs": list(map(_tree, _children(node)))}


def _children(node: plan.Node) -> Iterator[plan.Node]:
    for field in fields(node):
        value = getattr(node, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if is_dataclass(child) and isinstance(child, plan.NODES):
                yield child


def _lines(node: plan.Node) -> Iterator[str]:
    yield _headline(node)
    for child in _children(node):
        yield from (f"  {line}" for line in _lines(child))


def _headline(node: plan.Node) -> str:
    match node:
        case plan.Scan(relation=relation, terms=terms, part=part, whole=whole):
            return f"Scan({part}{' whole' if whole else ''}) {relation} ({', '.join(map(term, terms))})"
        case (plan.Shift(distance=distance) | plan.Box(distance=distance) | plan.LateBox(distance=distance) | plan.Recall(distance=distance)
              | plan.RunOn(distance=distance)):
            return f"{type(node).__name__} {_distance(distance)}"
        case plan.At(instant=instant, window=window):
            return f"At {term(instant)}{f', for {window} granules' if window else ''}"
        case plan.Place(instant=instant, late=late):
            return f"Place {term(instant)}{', known late' if late else ''}"
        case plan.Filter(condition=condition):
            return f"Filter {Expressions(show_group).show(condition)}"
        case plan.Extend(variable=variable, expression=expression):
            return f"Extend {term(variable)} := {Expressions(show_group).show(expression)}"
        case plan.Values(rows=rows):
            return f"Values, {len(rows)} rows"
    return type(node).__name__


def _distance(distance: Interval) -> str:
    return show_interval(distance, duration)
