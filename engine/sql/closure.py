"""Transitive closures as SQL: recursion inside the text in DuckDB; in Spark found before the text (engine/spark/graphs)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.ir.terms import Variable
from engine.plan import nodes
from engine.sql.leaves import spine
from engine.sql.relation import Relation, key_condition

if TYPE_CHECKING:
    from engine.sql.emit import Emitter


@dataclass(frozen=True, slots=True)
class Rounds:
    """A closure that Spark computes before the rest of the text runs.

    `edges` and `base` name relations among the first `before` ones of the text: pairs ``x y`` within the `within` columns. The result
    is read from the view `view`. `seeded` closures are extended at their end only. With a `length`, edges are ``x p y``, and wanted are
    the paths of so many.
    """

    view: str
    before: int
    edges: str
    base: str
    within: tuple[str, ...]
    seeded: bool = False
    length: int = 0


def reach(emitter: Emitter, plan: nodes.Reach) -> Relation:
    """The pairs that steps of `plan.step` connect, one or more."""
    step = emitter.relation(plan.step)
    graph = [emitter.name(plan.graph)] if plan.graph is not None else []
    within = (*step.keys, *graph)
    start, end = (emitter.name(v) for v in plan.ends)
    edges = emitter.add(f"SELECT DISTINCT {', '.join([*within, f'{start} AS x', f'{end} AS y'])} FROM {step.name}")
    base = _seeded(emitter, plan, edges, step.keys)
    closed = emitter.close(edges, base or edges, within, base is not None)
    renamed = [f"x AS {emitter.name(plan.first)}", f"y AS {emitter.name(plan.last)}"]
    name = emitter.add(f"SELECT {', '.join([*within, *renamed])} FROM {closed}")
    bound = (plan.first, plan.last, *((plan.graph,) if plan.graph is not None else ()))
    return Relation(name, step.keys, step.spine, bound, frozenset(bound))


def _seeded(emitter: Emitter, plan: nodes.Reach, edges: str, keys: tuple[str, ...]) -> str | None:
    """The edges that leave a value of the seed; None where a row of the seed may leave it open, so that all count."""
    seed = emitter.relation(plan.seed) if plan.seed is not None else None
    if seed is None or plan.first not in seed.certain:
        return None
    common = [key for key in keys if key in seed.keys]
    start = emitter.name(plan.first)
    same = " AND ".join(["a.x = b.v", *key_condition(keys, seed.keys)])
    starts = f"SELECT DISTINCT {', '.join([*common, f'{start} AS v'])} FROM {seed.name}"
    return emitter.add(f"SELECT a.* FROM {edges} a JOIN ({starts}) AS b ON {same}")


def chain(emitter: Emitter, plan: nodes.Chain) -> Relation:
    """The paths of as many edges as there are scans."""
    first = plan.scans[0]
    source, keys, _ = emitter.read(first.source)
    edges = emitter.add(f"SELECT DISTINCT {', '.join([*keys, 's AS x', 'p', 'o AS y'])} FROM {source}")
    found = emitter.before(edges, keys, length=len(plan.scans))
    terms = [first.subject, *(term for scan in plan.scans for term in (scan.predicate, scan.object))]
    bound = tuple(term for term in terms if isinstance(term, Variable))
    renamed = [f"{column} AS {emitter.name(variable)}" for column, variable in zip(chain_columns(len(plan.scans)), bound)]
    return Relation(emitter.add(f"SELECT {', '.join([*keys, *renamed])} FROM {found}"), keys, spine(source, keys), bound, frozenset(bound))


def chain_columns(length: int) -> list[str]:
    """The columns of a path of so many edges, in order: ``x0 p1 x1 p2 x2 ...``."""
    return ["x0", *(name for number in range(1, length + 1) for name in (f"p{number}", f"x{number}"))]


def recursion(name: str, edges: str, base: str, within: tuple[str, ...]) -> str:
    """The query of a recursive relation `name` (standard SQL: UNION keeps it a set)."""
    held = "".join(f"a.{column}, " for column in within)
    same = " AND ".join(["a.y = b.x", *key_condition(within, within)])
    columns = ", ".join([*within, "x", "y"])
    return f"SELECT {columns} FROM {base} UNION SELECT {held}a.x, b.y FROM {name} a JOIN {edges} b ON {same}"
