"""What a rule program asks of its closure, as SQL: the facts that begin at T and when each ceases."""

from __future__ import annotations

from engine.plan.derive import width
from engine.plan.nodes import Begun
from engine.sql.sources import closure_table


def begun_text(plan: Begun) -> str:
    """Rows ``tick s p o x3 ... hi``: of the facts that are reported those that begin at T and hold longer than was known before."""
    table = closure_table(plan.source.name)
    terms = ["s", "p", "o", *(f"x{number + 3}" for number in range(width(plan.source.rules)))]
    same = " AND ".join(f"e.{term} = c.{term}" for term in terms)
    longer = "(e.lo < c.lo AND e.hi >= c.hi OR e.lo = c.lo AND e.hi > c.hi)"
    known = f"SELECT 1 FROM {table} e WHERE e.reported = 1 AND {same} AND {longer}"
    return (f"SELECT k.tick, {', '.join(f'c.{term}' for term in terms)}, c.hi FROM {table} c JOIN ticks k ON c.lo = 2 * k.tick - 1 "
            f"WHERE c.reported = 1 AND NOT EXISTS ({known})")
