"""Closures by representatives as SQL: in the facts that a closure works with one term stands for those that are owl:sameAs it.

Which terms these are is found among the facts as they come (engine/worker/equality.py); facts that have others of them are written anew.
What rules name, and literals, stand for themselves: among these the rules of equality are applied. At the end the facts are expanded, as a
view, so that only those are made that a plan asks for.

The facts of a background are seen as it works with them itself, but for those with a term that stands for more terms than it does there:
these become facts of the closure above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from engine.ir.terms import SAME_AS
from engine.sql.dialect import fixed
from engine.sql.sources import closure_table

Part = Literal["graphs", "facts", "equal", "plain", "classed", "members", "behind", "rest", "changed", "added", "moves", "touched"]
"""Relations of a closure: the `graphs` of which it has facts, by its keys; the `facts` that it works with, once all are found; terms that
are `equal` to others, with their representatives, which are among their own; of the facts those that are shown as they are (`plain`), and
those to be expanded (`classed`) with the `members` that come into the places of their terms; what of the background is seen `behind` it.
While it is computed, terms that no longer stand for themselves (`moves`), these with what now stands for them (`touched`), the facts that
have them (`changed`), which then are `added`, and the `rest` of the background."""
PARTS: tuple[Part, ...] = get_args(Part)


def part_of(name: str, part: Part) -> str:
    """Name of a relation of a closure."""
    return f"{name}_{part}"


@dataclass(frozen=True, slots=True)
class Equality:
    """The relations of closure `name` with facts of these `columns`: the `keys` say of which graph a fact is, the `terms` are tokens,
    `identity` tells it from others. Table `named` has what rules name. Of the closure `behind` it the facts that it works with are read by
    `seen_behind`; they have the `terms_behind`."""

    name: str
    keys: tuple[str, ...]
    terms: tuple[str, ...]
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    named: str
    behind: str = ""
    seen_behind: str = ""
    terms_behind: tuple[str, ...] = ()

    def part(self, part: Part) -> str:
        """Name of one of its relations."""
        return part_of(self.name, part)

    @property
    def all(self) -> str:
        return closure_table(self.name)

    # -- while it is computed

    def pairs(self, table: str) -> str:
        """Terms that are said to be equal, with whether each stands for itself. A property that is equal to owl:sameAs, and that alone, is
        left to the rules: they derive what depends on terms being themselves."""
        same = fixed(SAME_AS)
        stay = ", ".join(f"substr({c}, 1, 1) = '\"' OR {c} IN (SELECT c0 FROM {self.named})" for c in "so")
        return (f"SELECT DISTINCT {_listed(self.keys)}s, o, {stay} FROM {table} "
                f"WHERE p = {same} AND s <> o AND s <> {same} AND o <> {same}")

    def mapped(self, source: str, keys: Sequence[str], touching: str = "") -> str:
        """The facts of a relation that have terms which no longer stand for themselves, or one `touching` others, with representatives in
        their places."""
        where = self.having(touching, keys) if touching else " OR ".join(f"m_{t}.term IS NOT NULL" for t in self.terms)
        return f"{self._with_moves(source, keys)} WHERE {where}"

    def begun(self, source: str) -> str:
        """The facts that a closure starts with, with representatives in the places of terms that do not stand for themselves."""
        return f"SELECT {', '.join(self.columns)} FROM ({self._merged(self._with_moves(source, self.keys))}) AS f"

    def _with_moves(self, source: str, keys: Sequence[str]) -> str:
        """All facts of a relation with representatives in the places of terms. The kind of a term stays, and so do the typed columns of an
        object."""
        made = ", ".join(f"coalesce(m_{c}.rep, f.{c}) AS {c}" if c in self.terms else f"f.{c}" for c in self.columns)
        joins = " ".join(f"LEFT JOIN {self.part('moves')} m_{t} ON {_and_term(f'm_{t}', keys, t)}" for t in self.terms)
        return f"SELECT {made} FROM {source} f {joins}"

    def _merged(self, facts: str) -> str:
        """Each of some facts once."""
        best = ", ".join(c if c in self.identity else f"min({c}) AS {c}" for c in self.columns)
        return f"SELECT {best} FROM ({facts}) AS f GROUP BY {', '.join(self.identity)}"

    def having(self, table: str, keys: Sequence[str]) -> str:
        """Whether a fact ``f`` has one of the terms of a table, which are of one graph by these `keys`."""
        return " OR ".join(f"EXISTS (SELECT 1 FROM {table} e WHERE {_and_term('e', keys, t)})" for t in self.terms)

    def added(self) -> str:
        """What of the changed facts is none yet, each once."""
        known = [self.all, *([self.part("behind")] if self.behind else [])]
        there = " AND ".join(f"NOT EXISTS (SELECT 1 FROM {table} k WHERE {_same('k', self.identity)})" for table in known)
        merged = self._merged(f"SELECT * FROM {self.part('changed')}")
        return f"SELECT {', '.join(self.columns)} FROM ({merged}) AS f WHERE {there}"

    def known_behind(self) -> str:
        """What deletes the facts that the background has as well."""
        return f"DELETE FROM {self.all} AS f WHERE EXISTS (SELECT 1 FROM {self.part('behind')} k WHERE {_same('k', self.identity)})"

    # -- at the end

    def equal(self, given: str) -> str:
        """All terms that are equal to others, with their representatives: the terms for which those `given` stand in the background, and
        the other equal terms of the background."""
        if not self.behind:
            return f"SELECT {_listed(self.keys)}rep, term FROM {given}"
        behind, keys = part_of(self.behind, "equal"), ", ".join(self.keys)
        graphs = f" CROSS JOIN {self.part('graphs')} AS k" if keys else ""
        own = (f"SELECT {_listed(self.keys)}f.rep, coalesce(b.term, f.term) AS term FROM {given} f "
               f"LEFT JOIN {behind} b ON b.rep = f.term")
        others = f"SELECT {_listed(self.keys)}f.rep, f.term FROM {behind} f{graphs}"
        known = f"SELECT 1 FROM {given} g WHERE {_and_term('g', self.keys, 'rep')}"
        return f"{own} UNION ALL SELECT * FROM ({others}) AS f WHERE NOT EXISTS ({known})"

    def members(self) -> str:
        """What comes into the places of terms in facts to be expanded: they themselves, where they are equal to no others."""
        equal, classed = self.part("equal"), self.part("classed")
        listed = _listed(self.keys)
        terms = " UNION ".join(f"SELECT {listed}{term} AS rep FROM {classed}" for term in self.terms)
        return (f"SELECT {listed}rep, term FROM {equal} UNION ALL SELECT {listed}rep, rep AS term FROM ({terms}) AS f "
                f"WHERE NOT EXISTS (SELECT 1 FROM {equal} e WHERE {_same('e', (*self.keys, 'rep'))})")

    def expanded(self, pulled: bool) -> str:
        """All facts; where some were `pulled` out of the background without those that it has."""
        made = ", ".join(f"m_{c}.term AS {c}" if c in self.terms else f"f.{c}" for c in self.columns)
        members = self.part("members")
        joins = " ".join(f"JOIN {members} m_{t} ON {''.join(f'm_{t}.{key} = f.{key} AND ' for key in self.keys)}m_{t}.rep = f.{t}"
                         for t in self.terms)
        text = f"SELECT {made} FROM {self.part('classed')} f {joins}"
        if pulled:
            known = f"SELECT 1 FROM {closure_table(self.behind)} h WHERE {_same('h', self.terms_behind)}"
            text = f"SELECT * FROM ({text}) AS f WHERE NOT EXISTS ({known})"
        return f"SELECT {', '.join(self.columns)} FROM {self.part('plain')} UNION ALL {text}"


def _listed(names: Iterable[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _same(table: str, columns: Iterable[str]) -> str:
    """Whether a row of a table has what ``f`` has in some columns."""
    return " AND ".join(f"{table}.{c} = f.{c}" for c in columns)


def _and_term(table: str, keys: Sequence[str], term: str) -> str:
    """Whether the term of a row of a table is what ``f`` has in a column, in the same graph."""
    return " AND ".join([*(f"{table}.{key} = f.{key}" for key in keys), f"{table}.term = f.{term}"])
