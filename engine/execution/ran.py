"""How a query was evaluated last, and why so: what EXPLAIN and /stats tell of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.execution.compiled import Form


@dataclass(frozen=True, slots=True)
class Ran:
    """The plan ran in `form` on `executor` by `strategy`, for the reason `why`, over so many `rows` of windows (all of its evaluations
    together). It read the kept `relations`; its statement answered so many queries `together`, of whose time `ms` is this one's share."""

    executor: str
    strategy: str
    form: Form
    why: str
    rows: int
    relations: tuple[str, ...] = ()
    together: int = 1
    ms: float = 0.0

    def to_json(self, users: Mapping[str, int]) -> dict[str, Any]:
        """The members of ``ran``; `users` says how many queries read each relation."""
        return {"why": self.why, "rows": self.rows, "ms": round(self.ms, 1), "together": self.together,
                "kept": [{"relation": name, "users": users.get(name, 1)} for name in self.relations]}

    def text(self, users: Mapping[str, int]) -> str:
        """The same as comments behind a plan."""
        kept = "".join(f"-- kept: {name}, read by {_counted(users.get(name, 1))}\n" for name in self.relations)
        together = f", one statement for {_counted(self.together)}" if self.together > 1 else ""
        return f"-- ran: {self.executor}, {self.strategy}: {self.why}\n-- last: {self.rows} rows in {self.ms:.1f} ms{together}\n{kept}"


def users_of(ran: Iterable[Ran]) -> Counter[str]:
    """How many queries read each kept relation."""
    return Counter(name for one in ran for name in one.relations)


def _counted(queries: int) -> str:
    return "1 query" if queries == 1 else f"{queries} queries"
