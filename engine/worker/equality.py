"""Closures by representatives in the DuckDB of a worker (engine/sql/equality.py): which terms are equal, by union and find as facts come
that say so; facts written anew for that; at the end the view that expands them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.sql.closing import Closing, Round, all_seen, saturate
from engine.sql.equality import PARTS, Equality, Part, part_of
from engine.worker.closures import Rounds, drop_relation, replace
from engine.worker.database import count_rows, registered

if TYPE_CHECKING:
    import duckdb

Key = tuple[object, ...]
"""The values of a closure's keys: of which T, and which item, a fact is."""
Node = tuple[Key, str]
Pair = tuple[Key, str, str, bool, bool]
"""Terms that are said to be equal, and of each whether it stands for itself."""
_VIEWS: frozenset[Part] = frozenset(("facts", "behind"))     # that may be
_GIVEN = "given_terms"
_TYPES = {"tick": pa.int64(), "g": pa.string()}


class Classes:
    """Terms that are equal, in each graph by itself. Of those of a class that do not stand for themselves one IRI stands for the IRIs, and
    one blank node for the blank nodes: one that stands for itself, if there is one, else the least."""

    def __init__(self) -> None:
        self._above: dict[Node, Node] = {}
        self._first: dict[Node, dict[str, tuple[bool, str]]] = {}     # of a root by kind: whether others may stand for it, and the term
        self._members: dict[Node, list[str]] = {}

    def merge(self, pairs: Iterable[Pair]) -> dict[Node, str]:
        """Take pairs of terms. The representatives of the terms that stood for themselves until now and no longer do."""
        moved: dict[Node, str] = {}
        for key, one, other, one_stays, other_stays in pairs:
            left, right = self._root(key, one, one_stays), self._root(key, other, other_stays)
            if left == right:
                continue
            self._above[right] = left
            first, second = self._first[left], self._first.pop(right)
            for kind, term in second.items():
                first[kind], *others = sorted((term, *([first[kind]] if kind in first else [])))
                for may_move, loser in others:
                    if may_move:
                        moved[key, loser] = first[kind][1]
                        self._take(key, first[kind][1], loser)
        return {node: self._last(node, moved) for node in moved}

    def rows(self) -> list[tuple[Key, str, str]]:
        """The representatives of several terms with each of these, themselves included."""
        return [(key, rep, term) for (key, rep), terms in self._members.items() for term in terms]

    def _root(self, key: Key, term: str, stays: bool) -> Node:
        node = key, term
        if node not in self._above:
            self._above[node] = node
            self._first[node] = {} if term[0] == '"' else {term[0]: (not stays, term)}
        while (above := self._above[node]) != node:
            self._above[node] = self._above[above]
            node = above
        return node

    def _take(self, key: Key, winner: str, loser: str) -> None:
        """One term stands for those of another, too. The shorter list is appended: there may be many terms."""
        short, long = sorted((self._members.pop((key, term), [term]) for term in (winner, loser)), key=len)
        long.extend(short)
        self._members[key, winner] = long

    def _last(self, node: Node, moved: dict[Node, str]) -> str:
        """What stands for a term in the end; so it does for all that stood for it in between."""
        (key, term), between = node, []
        while (key, term) in moved:
            between.append((key, term))
            term = moved[key, term]
        moved.update(dict.fromkeys(between, term))
        return term


class SameRounds(Rounds):
    """The rounds of a closure whose facts are those of representatives."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, closing: Closing, equality: Equality) -> None:
        super().__init__(connection, closing)
        self._equality, self._classes = equality, Classes()
        self._equal_behind = False  # whether some terms are equal in the background
        self._pulled = False    # whether facts of the background have become this closure's

    def start(self) -> None:
        equality, equal = self._equality, part_of(self._equality.behind, "equal")
        self._equal_behind = bool(equality.behind) and count_rows(self.connection, equal) > 0
        moved: dict[Node, str] = {}
        if not self._equal_behind:  # else its representatives come first
            moved = self._classes.merge(self._pairs(f"({self.closing.first})"))
        if moved:
            self._give_moves(moved)
            replace(self.connection, "TABLE", self.closing.all, equality.begun(f"({self.closing.first})"))
        else:
            super().start()
        pairs: list[Pair] = []
        if equality.behind:
            self._note_graphs()
            replace(self.connection, "VIEW", equality.part("behind"), equality.seen_behind)
            pairs += self._pairs(equality.part("behind"))
            if self._equal_behind:
                self._make("moves", f"SELECT term, rep FROM {equal} WHERE term <> rep")
                self._write_anew((), pulls=False)
                pairs += self._pairs(self.closing.all)
            elif moved:
                self._pull(equality.keys)
        self._join(pairs)
        if equality.behind:
            self.connection.execute(equality.known_behind())
            self._note_graphs()     # of one that has nothing of its own nothing is told
        self.found = count_rows(self.connection, self.closing.all)

    def advance(self, due: Round) -> bool:
        if not super().advance(due):
            return False
        self._join(self._pairs(self.closing.new))
        return True

    def finish(self) -> bool:
        """The closure's table becomes a relation of all facts; whether some terms are equal."""
        equality, rows = self._equality, self._classes.rows()
        facts, plain, classed = (equality.part(part) for part in ("facts", "plain", "classed"))
        self._give("moves", ("rep", "term"), ((*key, rep, term) for key, rep, term in rows))
        self._make("equal", equality.equal(equality.part("moves")))
        self._drop_new()
        if not rows and not self._equal_behind:
            replace(self.connection, "VIEW", facts, f"SELECT * FROM {equality.all}")
            return False
        drop_relation(self.connection, plain)
        self.connection.execute(f"ALTER TABLE {equality.all} RENAME TO {plain}")
        columns = ", ".join(equality.columns)
        expanded = equality.having(equality.part("equal"), equality.keys)
        self._make("classed", f"SELECT rowid AS place, {columns} FROM {plain} f WHERE {expanded}")
        self.connection.execute(f"DELETE FROM {plain} WHERE rowid IN (SELECT place FROM {classed})")
        self._make("members", equality.members())
        replace(self.connection, "VIEW", facts, f"SELECT {columns} FROM {plain} UNION ALL SELECT {columns} FROM {classed}")
        replace(self.connection, "VIEW", equality.all, equality.expanded(self._pulled))
        return True

    def _pairs(self, table: str) -> list[Pair]:
        wide = len(self._equality.keys)
        return [(row[:wide], *row[wide:]) for row in self.connection.execute(self._equality.pairs(table)).fetchall()]

    def _join(self, pairs: Iterable[Pair]) -> None:
        """Make terms one that are said to be equal."""
        moved = self._classes.merge(pairs)
        if moved:
            self._give_moves(moved)
            self._write_anew(self._equality.keys, pulls=bool(self._equality.behind))

    def _give_moves(self, moved: Mapping[Node, str]) -> None:
        """Make the tables of terms that no longer stand for themselves."""
        self._give("moves", ("term", "rep"), ((*key, term, rep) for (key, term), rep in moved.items()))
        self._give("touched", ("term",), {(*key, term) for (key, old), rep in moved.items() for term in (old, rep)})

    def _write_anew(self, keys: tuple[str, ...], *, pulls: bool) -> None:
        """Put representatives into the facts that have terms for which they stand now, by the `moves`, which are of one graph by these
        `keys`; also into those of the background, where it `pulls`."""
        equality = self._equality
        self._make("changed", equality.mapped(equality.all, keys))
        for table in self._own_tables():
            self.connection.execute(f"DELETE FROM {table} AS f WHERE {equality.having(equality.part('moves'), keys)}")
        self._add_changed()
        if pulls:
            self._pull(keys)

    def _pull(self, keys: tuple[str, ...]) -> None:
        """Make the facts of the background that have terms which stand for more than before this closure's."""
        equality, behind = self._equality, self._equality.part("behind")
        touched = equality.having(equality.part("touched"), keys)
        if not count_rows(self.connection, f"(SELECT 1 FROM {behind} f WHERE {touched} LIMIT 1) AS b"):
            return
        self._pulled = True
        self._make("changed", equality.mapped(behind, keys, equality.part("touched")))
        self._make("rest", f"SELECT * FROM {behind} f WHERE NOT ({touched})")
        drop_relation(self.connection, behind)
        self.connection.execute(f"ALTER TABLE {equality.part('rest')} RENAME TO {behind}")
        self._add_changed()

    def _add_changed(self) -> None:
        """Put the changed facts in, but those that are there."""
        self._make("added", self._equality.added())
        for table in self._own_tables():
            self.connection.execute(f"INSERT INTO {table} SELECT * FROM {self._equality.part('added')}")

    def _own_tables(self) -> list[str]:
        """The tables with facts of this closure."""
        return [self._equality.all, *([self.closing.new] if self._new == "TABLE" else [])]

    def _note_graphs(self) -> None:
        self._make("graphs", f"SELECT DISTINCT {', '.join(self._equality.keys) or '1 AS u'} FROM {self._equality.all}")

    def _make(self, part: Part, text: str) -> None:
        replace(self.connection, "TABLE", self._equality.part(part), text)

    def _give(self, part: Part, columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
        """Make a table of rows, which begin with the keys."""
        names, given = (*self._equality.keys, *columns), list(rows)
        arrays = [pa.array([row[place] for row in given], _TYPES.get(name, pa.string())) for place, name in enumerate(names)]
        with registered(self.connection, _GIVEN, pa.table(arrays, list(names)), {}):
            self._make(part, f"SELECT * FROM {_GIVEN}")


def close(connection: duckdb.DuckDBPyConnection, closing: Closing, equality: Equality) -> pa.Table | None:
    """Compute a closure under rules, which is then the relation `closing.all`; what is inconsistent in it, among all equal terms."""
    tables = SameRounds(connection, closing, equality)
    tables.start()
    known = all_seen(tables, closing.behind)
    saturate(closing, tables, known)
    if tables.finish():     # among them terms differ that were one in the rounds
        known = {property_: (classes, True, literals) for property_, (classes, _, literals) in known.items()}
    check = closing.check(known)
    return connection.sql(check).to_arrow_table() if check else None


def drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove what a closure by representatives has beside its table."""
    for part in PARTS:
        drop_relation(connection, part_of(name, part), is_view=part in _VIEWS)
