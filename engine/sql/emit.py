"""Logical plan -> SQL text: one common table expression per node, the same for both executors but for `dialect`.

The recipes and the traps behind them were checked against an independent engine (docs/decisions.md, "SPARQL to SQL"): three-valued
logic for errors, LeftJoin as ON, MINUS with its shared-variable clause, EXISTS seeded from the outer rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.functions.typed import ANY_KIND, Kinds
from engine.ir.expressions import Call, Expression
from engine.ir.terms import Constant, PatternTerm, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import BoundsSource, KeptSource, Plan, Source
from engine.sql import joins, leaves, modifiers
from engine.sql.calls import Columns, is_volatile
from engine.sql.codes import write_call
from engine.sql.dialect import Dialect
from engine.sql.functions.values import NULL_STRING
from engine.sql.leaves import Rounds
from engine.sql.lower import Lowering
from engine.sql.panes import Panes
from engine.sql.relation import Constants, Namer, Relation, columns
from engine.sql.sources import source_name

if TYPE_CHECKING:
    from engine.sql.fixpoint import ClosureText

EMITTERS: dict[type[Plan], Callable[[Any, Any], Relation]] = {
    nodes.Unit: leaves.unit, nodes.Scan: leaves.scan, nodes.Sample: leaves.sample,
    nodes.Nodes: leaves.ends, nodes.Star: leaves.star, nodes.Values: leaves.values, nodes.Given: leaves.given,
    nodes.Stamps: leaves.stamps, nodes.WindowTimes: leaves.window_times, nodes.Reach: leaves.reach,
    nodes.Join: joins.join, nodes.LeftJoin: joins.left_join, nodes.Otherwise: joins.otherwise, nodes.Minus: joins.minus,
    nodes.Lookup: joins.lookup, nodes.Union: joins.union, nodes.Seed: joins.seed, nodes.Mark: joins.mark,
    nodes.Filter: modifiers.filtered, nodes.Extend: modifiers.extend, nodes.Aggregate: modifiers.aggregate,
    nodes.Project: modifiers.project, nodes.Distinct: modifiers.distinct, nodes.Order: modifiers.order, nodes.Slice: modifiers.slice_,
    nodes.Gather: modifiers.gather}


@dataclass(frozen=True, slots=True)
class PlanText:
    """The text of a plan: `relations` stand on those of the ticks and windows (sources.py), `select` on them. Its last columns are the
    answer's, in order; before them stand ``tick`` and, where the plan orders its rows, ``ord``. Spark computes `rounds` before, in this
    order. Before anything else, `closures` are computed. `tables` are the relations with the facts of windows and graphs that it reads,
    beside those of its closures. Beside its sources it reads `panes`, and what `parts` give in all shards, each as a relation of the part's
    name; without a `select` it is what its only part gives."""

    relations: tuple[str, ...]
    select: str
    sources: tuple[Source, ...]
    rounds: tuple[Rounds, ...] = ()
    recursive: bool = False
    closures: tuple[ClosureText, ...] = ()
    tables: frozenset[str] = frozenset()
    panes: tuple[Panes, ...] = ()
    parts: tuple[tuple[str, PlanText], ...] = ()

    @property
    def kept(self) -> dict[str, KeptSource]:
        """The kept relations that it reads, by name."""
        read = [*(source for source in self.sources if isinstance(source, KeptSource)), *(one.source for one in self.panes)]
        return {source.name: source for source in read}

    @property
    def body(self) -> str:
        """The text above the sources, for people."""
        return ",\n".join(self.relations) + "\n" + self.select

    def statement(self, prefix: Sequence[str]) -> str:
        """The text to run, `prefix` being the texts of the sources."""
        return self._with([*prefix, *self.relations], self.select)

    def pairs(self, prefix: Sequence[str], rounds: Rounds) -> tuple[str, str]:
        """The texts of a closure's edges and of the pairs that it starts from."""
        before = [*prefix, *self.relations[:rounds.before]]
        return self._with(before, f"SELECT * FROM {rounds.edges}"), self._with(before, f"SELECT * FROM {rounds.base}")

    def _with(self, relations: Sequence[str], select: str) -> str:
        return f"WITH {'RECURSIVE ' if self.recursive else ''}" + ",\n".join(relations) + f"\n{select}"


class Emitter:
    """Emits one plan; create anew for each."""

    def __init__(self, dialect: Dialect, lowering: Lowering, typed: frozenset[Variable], kinds: Kinds = ANY_KIND,
                 constants: dict[str, Constants] | None = None, by_panes: bool = False) -> None:
        """`typed` are the variables that should have companions; the objects in windows have no other `kinds`. `constants` gets the inline
        data with many rows, which are to be given as tables (None: they stay in the text). What kept relations have is gathered `by_panes`
        where that serves."""
        self.dialect = dialect
        self.lowering = lowering
        self.typed = typed
        self.constants = constants
        self.by_panes = by_panes
        self._kinds = kinds
        self.name = Namer()
        self._texts: list[tuple[str, str]] = []     # names and what they are
        self._made: set[str] = set()                # names of what is made once, however often it is read
        self._done: dict[int, tuple[Plan, Relation]] = {}
        self._sources: dict[Source, None] = {}
        self._panes: dict[Panes, None] = {}
        self._rounds: list[Rounds] = []
        self._parts: list[tuple[str, PlanText]] = []
        self.most: dict[int, int] = {}      # of what ordered plans (by id) give, so many rows are asked for
        self._recursive = False

    def text(self, plan: Plan, variables: tuple[Variable, ...]) -> PlanText:
        """The whole plan with one row per solution and evaluation time."""
        relation = self.timed(self.relation(plan))
        have = [self.name(v) if v in relation.variables else f"{NULL_STRING} AS {self.name(v)}" for v in variables]
        order = ["ord"] if relation.ordered else []
        select = f"SELECT {', '.join(['tick', *order, *have])} FROM {relation.name}"
        return self._finish(select)

    def graph_text(self, plan: Plan, template: tuple[tuple[Term, Term, Term], ...]) -> PlanText:
        """CONSTRUCT: the distinct well-formed triples of the template's instances (SPARQL 1.1 section 16.2)."""
        relation = self.timed(self.relation(plan))
        listed = columns(replace(relation, typed={}), self.name, order=False)
        fresh = any(isinstance(t, Variable) and t.name.startswith("_:") for triple in template for t in triple)
        if fresh:
            relation = self._numbered(relation, listed)
        parts = []
        for triple in template:
            s, p, o = (self._instance(term, relation) for term in triple)
            parts.append(f"SELECT tick, {s} AS s, {p} AS p, {o} AS o FROM {relation.name}")
        union = " UNION ALL ".join(parts) or "SELECT tick, '' AS s, '' AS p, '' AS o FROM ticks WHERE FALSE"
        good = "substr(s, 1, 1) <> '\"' AND substr(p, 1, 1) = '<' AND o IS NOT NULL"
        return self._finish(f"SELECT DISTINCT tick, s, p, o FROM ({union}) AS made WHERE {good}")

    def _finish(self, select: str) -> PlanText:
        return PlanText(tuple(self._relations()), select, tuple(self._sources), tuple(self._rounds), self._recursive,
                        panes=tuple(self._panes), parts=tuple(self._parts))

    def _numbered(self, relation: Relation, listed: list[str]) -> Relation:
        """A solution's identity: its values, and its number among equal ones."""
        cells = [f"coalesce({self.name(v)}, '')" for v in relation.variables if v not in relation.booleans]
        number = f"CAST(row_number() OVER (PARTITION BY {', '.join(listed)} ORDER BY tick) AS STRING)"
        parts = [self.dialect.quote(self.lowering.context[0]), "CAST(tick AS STRING)", *cells, number]
        made = self.add(f"SELECT *, md5(concat_ws(' ', {', '.join(parts)})) AS solution FROM {relation.name}")
        return replace(relation, name=made)

    def _instance(self, term: Term, relation: Relation) -> str:
        if isinstance(term, Constant):
            return self.dialect.quote(term.token)
        if term.name.startswith("_:"):
            return f"concat('_:c', solution, {self.dialect.quote('x' + term.name[2:].encode().hex())})"
        return self.name(term) if term in relation.variables else NULL_STRING

    def relation(self, plan: Plan) -> Relation:
        """The relation of a plan node, emitted once."""
        if id(plan) not in self._done:
            self._done[id(plan)] = (plan, EMITTERS[type(plan)](self, plan))
        return self._done[id(plan)][1]

    def shard(self) -> Emitter:
        """Another, of what each shard evaluates; columns have the same names in both."""
        shard = Emitter(self.dialect, self.lowering, self.typed, self._kinds, self.constants, self.by_panes)
        shard.name = self.name
        return shard

    def gathered(self, shard: Emitter, relation: Relation, listed: Sequence[str]) -> Relation:
        """What the relation of a shard's emitter, which has evaluation times, holds in all shards: of its columns those that are listed."""
        part = f"gathered{len(self._parts)}"
        self._parts.append((part, shard._finish(f"SELECT {', '.join(listed)} FROM {relation.name}")))
        return replace(relation, name=self.add(f"SELECT * FROM {part}"), spine="ticks")

    def read(self, source: Source) -> tuple[str, tuple[str, ...], bool]:
        """Name of a source's relation, its keys, and whether one triple may stand in it twice."""
        if isinstance(source, nodes.StarSource) and source not in self._sources:
            self._texts.append((source_name(source), self._star(source)))
        self._sources.setdefault(source)
        return source_name(source), _keys(source), _repeats(source)

    def read_panes(self, panes: Panes) -> str:
        """Name of the relation of what is gathered by panes."""
        self._panes.setdefault(panes)
        return panes.name

    def kinds_in(self, source: Source) -> Kinds:
        """The kinds that objects of a source may have."""
        return self._kinds if isinstance(source, nodes.WindowSource) else ANY_KIND

    def _star(self, source: nodes.StarSource) -> str:
        new, known = source_name(nodes.FreshSource(source.closed)), source_name(nodes.KnownSource(source.closed, beside=True))
        listed = ", ".join(map(self.dialect.quote, source.properties))
        same = " AND ".join(f"f.{key} = k.{key}" for key in (*_keys(source), "s"))
        touched = f"SELECT 1 FROM {new} f WHERE {same} AND f.p IN ({listed})"
        if not self.dialect.numbers_stars:
            return f"SELECT k.* FROM {known} k WHERE k.p IN ({listed}) AND EXISTS ({touched})"
        numbered = ", ".join(f"({self.dialect.quote(property_)}, {number})" for number, property_ in enumerate(source.properties))
        return f"SELECT k.*, v.nth FROM {known} k JOIN (VALUES {numbered}) AS v(p, nth) ON v.p = k.p WHERE EXISTS ({touched})"

    def place_in_star(self, source: Source, property_: PatternTerm) -> int | None:
        """The number (column ``nth``) of a scan's property among those of its star, if it is told by that: to compare numbers is quicker
        than to compare IRIs that begin alike (docs/decisions.md)."""
        if not isinstance(source, nodes.StarSource) or not self.dialect.numbers_stars:
            return None
        assert isinstance(property_, Constant), "a star's properties are known"
        return source.properties.index(property_.token)

    def statement(self, select: str) -> str:
        """A statement over the relations made so far."""
        return f"WITH {', '.join(self._relations())} {select}"

    def _relations(self) -> Iterator[str]:
        for name, text in self._texts:
            yield f"{name} AS {'MATERIALIZED ' if name in self._made else ''}({text})"

    def add(self, select: str) -> str:
        """Name a further relation."""
        name = f"n{len(self._texts)}"
        self._texts.append((name, select))
        return name

    def times(self, window: int) -> str:
        """Name of the relation of a window's bounds."""
        source = BoundsSource(window)
        self._sources.setdefault(source)
        return source_name(source)

    def moment(self, milliseconds: str) -> str:
        """The dateTime of a column of milliseconds."""
        return self.dialect.call("tw_eval", write_call(Call("NOW", ()), [], [], "", 0), milliseconds, [])

    def close(self, edges: str, base: str, within: tuple[str, ...], seeded: bool) -> str:
        """The transitive closure of `edges` from the pairs of `base`, as a relation ``x y`` within the `within` columns."""
        if self.dialect.recursive:
            self._made.add(edges)   # else each step of the recursion makes them anew
            name = f"n{len(self._texts)}"
            self._texts.append((name, leaves.recursion(name, edges, base, within)))
            self._recursive = True
            return name
        digest = hashlib.sha256(self.lowering.context[0].encode()).hexdigest()[:16]
        rounds = Rounds(f"r{len(self._rounds)}_{digest}", len(self._texts), edges, base, within, seeded)
        self._rounds.append(rounds)
        return self.add(f"SELECT * FROM {rounds.view}")

    def spelling(self, relation: Relation, solution: tuple[Variable, ...] = ()) -> Columns:
        """How expressions spell the columns of a relation; `solution` tells its rows apart for RAND, UUID and BNODE."""
        return Columns(lambda v: self.name(v) if v in relation.variables else None, relation.typed, relation.booleans,
                       "tick" if "tick" in relation.keys else None, solution or relation.variables)

    def fresh_column(self, letter: str, number: int) -> str:
        """A column name unlike any other of the relations so far, but for the numbers that are given with one letter."""
        return f"{letter}{len(self._texts)}_{number}"

    def timed_for(self, expression: Expression, relation: Relation) -> Relation:
        """The relation with the evaluation times, if the expression depends on them."""
        return self.timed(relation) if is_volatile(expression) else relation

    def timed(self, relation: Relation) -> Relation:
        """Give a static relation every evaluation time."""
        if "tick" in relation.keys:
            return relation
        listed = ", ".join(f"a.{c}" for c in columns(relation, self.name) if c != "1 AS u")
        name = self.add(f"SELECT t.tick{', ' + listed if listed else ''} FROM {relation.name} a CROSS JOIN ticks t")
        spine = "ticks"
        if relation.keys:
            spine = self.add(f"SELECT t.tick, a.* FROM {relation.spine} a CROSS JOIN ticks t")
        return replace(relation, name=name, keys=("tick", *relation.keys), spine=spine)


def _keys(source: Source) -> tuple[str, ...]:
    """The columns that every operator above a source carries along."""
    match source:
        case nodes.StaticSource():
            return ()
        case nodes.ShareSource(source=shared):
            return _keys(shared)
        case nodes.ClosedSource() | nodes.RestSource():
            closed = source.closed if isinstance(source, nodes.RestSource) else source
            return () if closed.is_static else ("tick",)
        case nodes.KnownSource(closed=closed) | nodes.FreshSource(closed=closed) | nodes.StarSource(closed=closed):
            return closed.keys
    return ("tick",)


def _repeats(source: Source) -> bool:
    """Whether one triple may stand in a source twice."""
    match source:
        case nodes.MergedSource(parts=parts, is_disjoint=True):
            return any(map(_repeats, parts))
        case nodes.ClosedSource(has_intervals=repeats):
            return repeats
        case nodes.ShareSource(source=shared):
            return _repeats(shared)
    return isinstance(source, (nodes.WindowSource, nodes.AtomsSource))
