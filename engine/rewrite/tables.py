"""Unifying an atom that is asked for with the head of a rule, where both stand beside a table of constants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.grouping import by_key
from engine.ir.rules import Table
from engine.ir.substitution import Bindings, value
from engine.ir.terms import Constant, Term, Variable

Row = tuple[str, ...]
Rows = frozenset[Row]


@dataclass(frozen=True, slots=True)
class Choices:
    """A relation of tokens: one column for each of `columns`."""

    columns: tuple[Variable, ...] = ()
    rows: Rows = frozenset([()])

    def only(self, columns: Sequence[Variable]) -> Choices:
        """These of the columns, in their order here."""
        kept = tuple(v for v in self.columns if v in columns)
        if kept == self.columns:
            return self
        places = [self.columns.index(v) for v in kept]
        return Choices(kept, frozenset(tuple(row[place] for place in places) for row in self.rows))

    def with_value(self, column: Variable, token: str) -> Choices:
        """One more column, with this token in each row."""
        return Choices((*self.columns, column), frozenset((*row, token) for row in self.rows))

    def fixed(self, but: Collection[Variable]) -> dict[Variable, Constant]:
        """The columns, but for some, that have one token in all rows, with that."""
        return {v: Constant(next(iter(self.rows))[place]) for place, v in enumerate(self.columns)
                if v not in but and len({row[place] for row in self.rows}) == 1}

    def renamed(self, names: Mapping[Variable, Variable]) -> Choices:
        """The same with other names for columns."""
        return replace(self, columns=tuple(names.get(v, v) for v in self.columns))


@dataclass(slots=True)
class Listed:
    """A rule's table with an index for each set of columns that was asked for."""

    columns: tuple[Variable, ...]
    rows: tuple[Row, ...]
    _indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> Listed:
        """From a part of a body."""
        return cls(table.variables, tuple(tuple(cell.token for cell in row) for row in table.rows))

    def matching(self, places: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows with these tokens at these places."""
        if not places:
            return self.rows
        if places not in self._indexes:
            self._indexes[places] = by_key((tuple(row[place] for place in places), row) for row in self.rows)
        return self._indexes[places].get(key, ())


def unify(asked: Sequence[Term], given: Sequence[Term], visible: frozenset[Variable]) -> dict[Variable, Term] | None:
    """Bindings that make the terms equal, or None; a visible variable stays one as long as it can."""
    bindings: dict[Variable, Term] = {}
    if len(asked) != len(given):
        return None
    for one, other in zip(asked, given):
        left, right = value(one, bindings), value(other, bindings)
        if left == right:
            continue
        if isinstance(right, Variable) and right not in visible:
            bindings[right] = left
        elif isinstance(left, Variable) and (isinstance(right, Constant) or left not in visible):
            bindings[left] = right
        elif isinstance(right, Variable):
            bindings[right] = left
        else:
            return None
    return bindings


def joined(choices: Choices, listed: Listed, bindings: Bindings) -> Choices:
    """The rows of both that agree, under the bindings: a column of each value that is still a variable."""
    mine = [value(v, bindings) for v in choices.columns]
    theirs = [value(v, bindings) for v in listed.columns]
    columns = tuple(dict.fromkeys(t for t in (*mine, *theirs) if isinstance(t, Variable)))
    known = {t for t in mine if isinstance(t, Variable)}
    places = tuple(place for place, t in enumerate(theirs) if isinstance(t, Constant) or t in known)
    found: set[Row] = set()
    for row in choices.rows:
        bound = _agreeing({}, mine, row)
        if bound is not None:
            key = tuple(t.token if isinstance(t, Constant) else bound[t] for t in (theirs[place] for place in places))
            for other in listed.matching(places, key):
                both = _agreeing(bound, theirs, other)
                if both is not None:
                    found.add(tuple(both[v] for v in columns))
    return Choices(columns, frozenset(found))


def _agreeing(bound: dict[Variable, str], terms: Iterable[Term], row: Row) -> dict[Variable, str] | None:
    """`bound` with the tokens of a row; None where they contradict."""
    both = dict(bound)
    for term, token in zip(terms, row):
        if (term.token if isinstance(term, Constant) else both.setdefault(term, token)) != token:
            return None
    return both
