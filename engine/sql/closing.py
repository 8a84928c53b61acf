"""A closure that is to be computed: its statements for one evaluation, and the rounds that any executor runs with them (semi-naive).

Its rows are in the table ``{name}_all``, those of the last round in ``{name}_new``. Of one that is kept (engine/worker/closures.py) those
of evaluations before, and of one that shards make together (engine/worker/exchange.py) those from before the last exchange, are in
``{name}_state``; for each round those of them beside the new rows are in ``{name}_kept_beside``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Protocol

from engine.ir.strata import rounds
from engine.ir.terms import RDF_TYPE
from engine.plan.derive import Seen, Shape
from engine.sql.dialect import fixed
from engine.sql.equality import Equality
from engine.sql.sources import closure_table

FINDINGS_READ = 100_000
"""So many rows with what is inconsistent an evaluation gives; a result lists fewer, and counts them (engine/runtime/query.py)."""

SeenRow = tuple[str, str | None, int, int]
"""What rows of a table are like: property or mark, class, whether a subject differs from its object, and whether an object is a literal."""


def part_table(name: str, part: Literal["new", "next", "state", "kept_beside", "sent"]) -> str:
    """Name of a relation of a closure: what the last round found; what a round finds, until it is new; what is kept; what of that stands
    beside what is new; what other shards are sent."""
    return f"{name}_{part}"


@dataclass(frozen=True, slots=True)
class StepText:
    """A step of a round, to be run where some of what it wants of the new rows and all that it wants of the known ones is there. `ends`: by
    which known rows stand beside new ones, two letters each, the end of the new row first (``os``: its object is the subject of the
    other). Steps of one `rule` have its number in the stratum."""

    rule: int
    new: tuple[Shape, ...]
    known: tuple[Shape, ...]
    ends: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class CheckText:
    """Where the body of a rule with head ``false`` holds, to be looked for where there are rows of the `shapes` of its atoms."""

    shapes: tuple[Shape, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Round:
    """What a round runs; of what is kept it reads all, and what stands beside new rows by some `ends` (StepText)."""

    text: str
    ends: frozenset[str]


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with what evaluations number `first` to `last` found."""

    first: int
    last: int
    path: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the rows of a closure are kept: `segments`, of which what ends before `point` counts no more; `out` gets what is found now,
    and what it `replaces` of the others. That may be the `whole`: then rows of one fact that began before `point` are one, as all of them
    hold there."""

    segments: tuple[Segment, ...]
    out: Segment
    point: int
    replaces: tuple[Segment, ...]
    columns: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether `out` gets everything."""
        return bool(self.segments) and len(self.replaces) == len(self.segments)

    def all_text(self, closing: Closing, replaced: str) -> str:
        """What goes into `out`; unless it is everything, `replaced` is the relation with what is in the segments that it replaces."""
        listed = ", ".join(self.columns)
        if not self.whole:
            older = f" UNION ALL SELECT {listed} FROM {replaced} WHERE hi >= {self.point}" if self.replaces else ""
            return f"SELECT {listed} FROM {closing.all}{older}"
        both = f"(SELECT {listed} FROM {closing.state} UNION ALL SELECT {listed} FROM {closing.all}) AS b WHERE hi >= {self.point}"
        keys = ", ".join(c for c in self.columns if c not in ("lo", "hi"))
        best = ", ".join({"lo": "min(lo) AS lo", "hi": "max(hi) AS hi"}.get(c, c) for c in self.columns)
        return (f"SELECT {best} FROM {both} AND lo < {self.point} GROUP BY {keys} "
                f"UNION ALL SELECT {listed} FROM {both} AND lo >= {self.point} ORDER BY p, hi")


@dataclass(frozen=True, slots=True)
class ExchangeText:
    """What a shard has and sends of a closure that shards make together, as conditions of its rows, which have these `columns`: those that
    are its `own`, and those that others are `sent` (empty: none)."""

    columns: tuple[str, ...]
    own: str
    sent: str


@dataclass(frozen=True, slots=True)
class Stratum:
    """The steps of a stratum's rounds, and the names of those rules in it that may derive for ever (engine/ir/strata.py)."""

    steps: tuple[StepText, ...]
    endless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """A closure to be computed now: `first` is what table ``{name}_all`` starts with; a round of a stratum runs the steps that are `due`,
    their union between `before` and `after`. At the end `checks` (behind the WITH clause `known`) find what is inconsistent: rows
    ``lo hi finding``, with the points between which it is. One that is `static` is made of static graphs alone, and stays for later
    bundles. `behind` is the table of the background, `graphs` are those of the static graphs that it is made of. `kept`: what it goes on
    from (None: it is made anew). With an `equality` the rounds work with representatives. `exchange`: shards make it together
    (engine/worker/exchange.py)."""

    name: str
    first: str
    strata: tuple[Stratum, ...]
    before: str
    after: str
    checks: tuple[CheckText, ...] = ()
    known: str = ""
    static: bool = False
    behind: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    kept: Kept | None = None
    equality: Equality | None = None
    exchange: ExchangeText | None = None

    @property
    def all(self) -> str:
        return closure_table(self.name)

    @property
    def new(self) -> str:
        return part_table(self.name, "new")

    @property
    def beside(self) -> str:
        return part_table(self.name, "kept_beside")

    @property
    def state(self) -> str:
        return part_table(self.name, "state")

    def due(self, stratum: Stratum, new: Seen, known: Seen, old: Seen | None = None) -> Round | None:
        """What a round finds that is not known, given what the rows are like; None where nothing can follow. `old`, where it is given, are
        all known rows that are not among the new ones."""
        steps = [step for step in stratum.steps
                 if any(shape.in_(new) for shape in step.new) and all(shape.in_(known) for shape in step.known)]
        if old is not None:
            steps = list(_enough(steps, old))
        text = f"{self.before}{_union([step.text for step in steps])}{self.after}"
        return Round(text, frozenset().union(*(step.ends for step in steps))) if steps else None

    def check(self, known: Seen) -> str | None:
        """What finds what is inconsistent, given what the rows are like; None where nothing can be."""
        texts = [check.text for check in self.checks if all(shape.in_(known) for shape in check.shapes)]
        if not texts:
            return None
        return f"{self.known} SELECT * FROM ({' UNION '.join(texts)}) AS found ORDER BY lo, finding LIMIT {FINDINGS_READ}"


def _enough(steps: Sequence[StepText], old: Seen) -> Iterator[StepText]:
    """One step of each rule that finds all that the rule gives, since some atom matches new rows only; else all of them."""
    for _, found in groupby(steps, lambda step: step.rule):
        of_rule = list(found)
        whole = next((step for step in of_rule if not any(shape.in_(old) for shape in step.new)), None)
        yield from of_rule if whole is None else [whole]


def _union(texts: Sequence[str]) -> str:
    """All rows of some queries, as a balanced tree: Spark walks it by recursion, and OWL 2 RL has a hundred steps in a round."""
    if len(texts) <= 2:
        return " UNION ALL ".join(texts)
    half = len(texts) // 2
    return f"({_union(texts[:half])}) UNION ALL ({_union(texts[half:])})"


class Tables(Protocol):
    """Where a closure is computed: what an executor does with its statements."""

    def seen(self, table: str) -> list[SeenRow]:
        """The rows of `seen_text` for a table."""

    def begin(self) -> None:
        """The table of what is new gets all that is found so far."""

    def advance(self, due: Round) -> bool:
        """What a round finds becomes what is new, beside what was found; whether that is anything."""


def saturate(closing: Closing, tables: Tables, known: Seen) -> str | None:
    """Run the rounds of a closure, whose table holds what it starts with, until nothing new comes, stratum by stratum. The statement
    that then finds what is inconsistent; None where nothing can be. `known` tells what the rows of the background are like, and those
    that are kept; it gets those that are found. Raises Unending (engine/ir/strata.py)."""
    before = dict(known)
    for stratum in closing.strata:
        tables.begin()
        old: Seen | None = before
        for _ in rounds(stratum.endless):
            rows = tables.seen(closing.new)
            add_seen(known, rows)
            due = closing.due(stratum, add_seen({}, rows), known, old)
            if due is None or not tables.advance(due):
                break
            old = None
    return closing.check(known)


def seen_text(table: str) -> str:
    """What the rows of a table are like: rows of `Seen`."""
    kind = f"CASE WHEN p = {fixed(RDF_TYPE)} THEN o END"
    differs, literal = (f"max(CASE WHEN {test} THEN 1 ELSE 0 END)" for test in ("s <> o", "substr(o, 1, 1) = '\"'"))
    return f"SELECT p, {kind} AS c, {differs} AS d, {literal} AS l FROM {table} GROUP BY p, {kind}"


def all_seen(tables: Tables, names: Iterable[str]) -> Seen:
    """What the rows of some tables are like."""
    seen: Seen = {}
    for name in names:
        add_seen(seen, tables.seen(name))
    return seen


def add_seen(seen: Seen, rows: Iterable[SeenRow]) -> Seen:
    """`seen` with the rows of a `seen_text`; they are added to it."""
    for property_, class_, differs, literal in rows:
        classes, differed, literals = seen.get(property_, (set[str](), False, False))
        seen[property_] = classes | ({class_} if class_ is not None else set()), differed or bool(differs), literals or bool(literal)
    return seen
