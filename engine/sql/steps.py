"""The statements of a step of a program over interval relations, for DuckDB.

What is derived for a relation is read together with the rows that it has of the same terms, or all that it has. Coalesced
(engine/worker/program.py), they are the view ``_round``, and take the place of the old rows. Statements are written once for all runs of a
program: what changes from step to step are parameters (intervals.py), and each run has another prefix of its tables in the place of PREFIX.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp

from engine.plan import intervals as plan
from engine.plan.analyses import Watched, shared
from engine.sql.intervals import Emitter, pending
from engine.sql.tree import (above, aliased, at_least, at_most, below, both, column, delete, equal, flag, greatest, insert, number,
                             parameter, parameters, plus, same, select, table_of, union_all, update, when, with_first, written)
from engine.timeline import MAX

PREFIX = f"p{secrets.token_hex(8)}_"    # no text of a document has it
POINTS = "lo", "hi", "seen", "taken"     # of a row, and how far it is read (intervals.py)


@dataclass(frozen=True)
class Statements:
    """The statements of a program's relations, whose tables are PREFIX with 1, 2, ... behind it."""

    program: plan.Program
    _texts: dict[object, tuple[str, frozenset[str]]] = field(default_factory=dict, repr=False, compare=False)

    def text(self, key: object, make: Callable[[], exp.Expr]) -> tuple[str, frozenset[str]]:
        """The text of a statement and its parameters; it is made and written once."""
        if key not in self._texts:
            tree = make()
            names = parameters(tree)
            self._texts[key] = written(tree), names
        return self._texts[key]

    @cached_property
    def shared(self) -> tuple[Statements, dict[str, str]]:
        """The statements of the program with one relation for those that are derived alike, and by which one each other one is read."""
        program, of = shared(self.program)
        return (Statements(program) if of else self), of

    @cached_property
    def tables(self) -> dict[str, str]:
        return {relation.name: f"{PREFIX}{place}" for place, relation in enumerate(self.program.relations, 1)}

    @cached_property
    def emitter(self) -> Emitter:
        return Emitter(self.tables, self.program.granule, PREFIX)

    def create(self, relation: plan.Relation) -> exp.Expr:
        """The table of a relation. It replaces one left by a step that was interrupted."""
        columns = [*((name, exp.DType.VARCHAR) for name in _terms(relation)), *((name, exp.DType.BIGINT) for name in POINTS)]
        listed = [exp.ColumnDef(this=exp.to_identifier(name), kind=exp.DataType.build(kind)) for name, kind in columns]
        table = exp.Schema(this=table_of(self.tables[relation.name]), expressions=listed)
        return exp.Create(this=table, kind="TABLE", replace=True)

    def pieces(self, relation: plan.Relation, derivations: Sequence[plan.Derivation], given: bool, same_terms: bool) -> exp.Expr:
        """What is derived (and, from the table ``_given``, what came in), and the rows that the table has (`held`): those with
        the same terms, or all."""
        new = [*map(self.emitter.derivation, derivations), *([self._given(relation)] if given else [])]
        terms, seen = _terms(relation), plus("lo", -1)
        there = exp.Exists(this=select(number(1), source=aliased("new", "n"), where=same(terms, "n", "k")))
        rows = [select(*terms, "lo", "hi", seen.as_("seen"), seen.copy().as_("taken"), flag(False).as_("held"), source="new"),
                select(*(column(c, "k") for c in (*terms, *POINTS)), flag(True).as_("held"),
                       source=aliased(self.tables[relation.name], "k"), where=[there] if same_terms else [])]
        return with_first(union_all(rows), {"new": union_all(new)}).limit(parameter("most"), copy=False)

    def replace(self, relation: plan.Relation) -> list[exp.Expr]:
        """Two statements: delete the rows of the terms in ``_round`` (not needed where none are held), and insert those of ``_round``: the
        next round takes them in."""
        table, terms = self.tables[relation.name], _terms(relation)
        touched = exp.Exists(this=select(number(1), source=aliased(f"{table}_round", "n"), where=same(terms, "n", table)))
        taken = when(below("taken", parameter("until")), column("hi"), column("taken"))
        rows = select(*terms, "lo", "hi", "seen", taken.as_("taken"), source=f"{table}_round")
        return [delete(table, touched), insert(table, [*terms, *POINTS], rows)]

    def changes(self, relation: plan.Relation) -> exp.Expr:
        """Rows that are new in the step, begin in it, or end with it. Those that are kept have ended once."""
        begins = [above("lo", parameter("past")), at_most("lo", parameter("until"))]
        ends = [below("hi", parameter("until")), *([at_least("hi", parameter("past"))] if relation.keep else [])]
        where = exp.or_(both(*pending("seen")), both(*begins), both(*ends), copy=False)
        return select(*_terms(relation), "lo", "hi", "seen", source=self.tables[relation.name], where=[where])

    def rows(self, relation: plan.Relation) -> exp.Expr:
        """All rows that are held."""
        return select(*_terms(relation), "lo", "hi", source=self.tables[relation.name])

    def kept(self, relation: plan.Relation) -> exp.Expr:
        """All rows with how far they are read."""
        return select(*_terms(relation), *POINTS, source=self.tables[relation.name])

    def load(self, relation: plan.Relation) -> exp.Expr:
        """Take in such rows, from the table ``_given``."""
        table, columns = self.tables[relation.name], [*_terms(relation), *POINTS]
        return insert(table, columns, select(*columns, source=f"{table}_given"))

    def upcoming(self, relation: plan.Relation, watched: Watched) -> exp.Expr:
        """The first point behind the step at which a row begins, or no longer holds, or a box over it begins."""
        until, ends = parameter("until"), "hi"
        ahead = exp.If(this=above("lo", until), true=column("lo"))
        later = above(ends, until.copy()) if watched.is_open else at_least(column(ends), until.copy())
        ends_at = exp.If(this=both(later, below(ends, number(MAX))), true=plus(ends, 1))
        boxes = [exp.Case(ifs=[exp.If(this=both(equal("hi", until.copy()), above(plus("lo", far), until.copy())),
                                      true=plus("lo", far))]) for far in watched.boxes]
        firsts = [exp.Min(this=case) for case in (exp.Case(ifs=[ahead, ends_at]), *boxes)]
        return select(*(first.as_(f"n{place}") for place, first in enumerate(firsts)), source=self.tables[relation.name])

    def evict(self, relation: plan.Relation) -> exp.Expr:
        """Forget what ended and is not looked back at."""
        return delete(self.tables[relation.name], below("hi", plus(parameter("until"), -relation.keep)))

    def begin(self, relation: plan.Relation) -> exp.Expr:
        """The first round takes in what has waited for this step."""
        return update(self.tables[relation.name], "taken", "hi", pending("taken"))

    def settle(self, relation: plan.Relation, recursive: bool) -> exp.Expr:
        """All readers have taken in what the step had; the rounds of a recursive relation nothing that lies beyond it."""
        table = self.tables[relation.name]
        if recursive:
            return update(table, "seen", "taken", [below("seen", "taken")])
        return update(table, "seen", "hi", pending("seen"))

    def size(self, relation: plan.Relation) -> exp.Expr:
        """The number of rows, the last point that is seen of one that reaches beyond, and the first point at which one ends."""
        waiting = exp.Min(this=exp.Case(ifs=[exp.If(this=below("seen", "hi"), true=column("seen"))]))
        return select(exp.Count(this=exp.Star()), waiting, exp.Min(this=column("hi")), source=self.tables[relation.name])

    def _given(self, relation: plan.Relation) -> exp.Query:
        """What came in; on a timeline of granules whole ones from its first on."""
        table, terms, granule = f"{self.tables[relation.name]}_given", _terms(relation), self.program.granule
        if not granule:
            return select(*terms, "lo", "hi", source=table)
        lo, hi = (exp.Sub(this=column(end), expression=exp.Mod(this=exp.paren(plus(exp.Mod(this=column(end), expression=number(granule)),
                                                                                   granule)), expression=number(granule)))
                  for end in ("lo", "hi"))
        ends = when(above("hi", number(MAX - 1)), column("hi"), plus(hi, granule - 1))
        aligned = select(*terms, greatest(lo, parameter("start")).as_("lo"), ends.as_("hi"), source=table)
        return select(*terms, "lo", "hi", source=aliased(aligned, "g"), where=[at_most("lo", "hi")])


@lru_cache(maxsize=64)
def statements_of(program: plan.Program) -> Statements:
    """The statements of a program, for all that run it."""
    return Statements(program)


def step_texts(program: plan.Program) -> str:
    """For EXPLAIN: what each relation derives of what is new in a step, as SQL."""
    (statements, _), found = statements_of(program).shared, []
    for relation in statements.program.relations:
        new = [derivation for derivation in relation.derivations if derivation.part == "new"]
        if new:
            text, _ = statements.text(relation.name, lambda: statements.pieces(relation, new, False, True))
            found.append(f"-- {relation.name}\n{text.replace(PREFIX, 'r')}\n")
    return "".join(found)


def _terms(relation: plan.Relation) -> list[str]:
    return [f"a{place}" for place in range(1, relation.arity + 1)]
