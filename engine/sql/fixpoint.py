"""Closures under rules as SQL: the text of one round, which an executor repeats until it finds nothing new (semi-naive).

A closure is a relation of columns ``tick`` unless it is static, ``g`` where it is of each item by itself, then ``s p o``, the further
terms of long atoms ``x3 x4 ...``, of a lasting one the points ``lo hi`` and whether it is ``shown``, and the typed companions of ``o``.
A lasting one has for each begin of a fact a row with its last end, unless an earlier one lasts as long, and stands on what it has kept.
A round reads all that is ``{name}_known``, and where that will do what is ``{name}_beside`` its new rows (closing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.functions.typed import Kind, typed
from engine.ir.expressions import variables_of
from engine.ir.growth import endless
from engine.ir.rules import Assign, Atom, Falsum, Rule, Test
from engine.ir.strata import strata
from engine.ir.terms import Constant, Term, Variable
from engine.plan.derive import NOTHING, Step, all_sights, axiom, is_axiom, shapes, steps, whole, width
from engine.plan.nodes import ClosedSource, MergedSource, Source
from engine.sql.closing import CheckText, Closing, StepText, Stratum, beside_table, state_table
from engine.sql.dialect import Dialect, fixed
from engine.sql.emit import Emitter
from engine.sql.functions.values import double
from engine.sql.lower import Lowering
from engine.sql.relation import Relation
from engine.sql.sources import closure_table, source_name
from engine.timeline import MAX, MIN

_TYPED = ("kind", "number", "micros")
_COVERS = {"lo": "<=", "shown": ">=", "sight": ">="}    # how what is known stands to what is derived and by it superfluous
NO_TIMES = "ticks AS (SELECT CAST(0 AS BIGINT) AS tick)"
_EMPTY = ("(SELECT '' AS s, '' AS p, '' AS o, CAST(0 AS TINYINT) AS kind, CAST(0 AS DOUBLE) AS number, CAST(0 AS BIGINT) AS micros "
          "WHERE FALSE) AS nothing")


@dataclass(frozen=True, slots=True)
class ClosureText:
    """How a closure is computed: it starts with `base` (over the texts of the sources) as what is known and new; then the steps of each
    stratum give what is new until that is nothing. They read the tables ``{name}_all`` and ``{name}_new``; ``known`` is what joins see.
    """

    name: str
    source: ClosedSource
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    base: str
    known: str
    strata: tuple[Stratum, ...]
    checks: tuple[CheckText, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """What its base is made of."""
        return self.source.base, *(view for _, view in self.source.views)

    def ready(self, prefix: Sequence[str]) -> Closing:
        """The statements for an evaluation; `prefix` are the texts of the sources of `base`, the evaluation times first. Those of a
        static closure are the same in each. A lasting one begins with what is new on its streams (instances.py)."""
        if self.source.static:
            prefix = (NO_TIMES,)
        lasting = self.source.lasting
        same = " AND ".join([*(f"k.{c} {_COVERS.get(c, '=')} f.{c}" for c in self.identity), *(["k.hi >= f.hi"] if lasting else [])])
        best = ["max(hi) AS hi"] if lasting else []
        merged = ", ".join([*self.identity, *best, *(f"min({c}) AS {c}" for c in _TYPED)])
        before = f"WITH {prefix[0]}, {self.known} SELECT {', '.join(self.columns)} FROM (SELECT {merged} FROM ("
        after = (f") AS d GROUP BY {', '.join(self.identity)}) AS f "
                 f"WHERE NOT EXISTS (SELECT 1 FROM {self.name}_known k WHERE {same})")
        behind = (closure_table(self.source.background.name),) if self.source.background else ()
        first, known = f"WITH {', '.join(prefix)} {self.base}", f"WITH {prefix[0]}, {self.known}"
        return Closing(self.name, first, self.strata, before, after, self.checks, known, self.source.static, behind)


def closure_text(source: ClosedSource, dialect: Dialect, lowering: Lowering) -> ClosureText:
    """The texts of a closure. Raises Unstratified for rules that depend on their own negation."""
    keys = _keys(source)
    further = tuple(f"x{number + 3}" for number in range(width(source.rules)))
    identity = (*keys, "s", "p", "o", *further, *(("lo", "shown") if source.lasting else ()), *(("sight",) if source.views else ()))
    columns = (*identity, *(("hi",) if source.lasting else ()), *_TYPED)

    def text(step: Step) -> str:
        shown = step.rule.role == source.shown if source.lasting else None
        return f"({_step(step, source, identity, shown, dialect, lowering)})"

    layers = strata(rule for rule in source.rules if isinstance(rule.head, Atom) and not is_axiom(rule))
    texts = tuple(Stratum(tuple(StepText(step.new, step.known, step.ends, text(step)) for rule in layer for step in steps(rule, source)),
                          endless(layer)) for layer in layers)
    axioms = [text(axiom(rule, source)) for rule in source.rules if is_axiom(rule)] if source.background is None else []
    checks = tuple(CheckText(shapes(rule), _check(rule, source, dialect, lowering))
                   for rule in source.rules if isinstance(rule.head, Falsum))
    base = "" if source.lasting else _base(source, keys, further, axioms)
    known = _known(source, columns, further, dialect)
    return ClosureText(source.name, source, columns, identity, base, known, texts, checks)


def _check(rule: Rule, source: ClosedSource, dialect: Dialect, lowering: Lowering) -> str:
    """Where the body of a rule with head ``false`` holds: its name and its bindings, as text."""
    emitter = Emitter(dialect, lowering, frozenset())
    relation = emitter.relation(whole(rule, source))
    held = "2 * tick - 1 AS lo, 2 * tick - 1 AS hi"
    if source.static or source.lasting:
        held = "lo, hi" if relation.lasting else f"CAST({MIN} AS BIGINT) AS lo, CAST({MAX} AS BIGINT) AS hi"
    shown = sorted(v for v in relation.variables if v.visible)
    parts = [dialect.quote(f"{rule.name or 'false'}:"), *(f"concat({dialect.quote(f' ?{v.name} = ')}, {emitter.name(v)})" for v in shown)]
    text = f"concat({', '.join(parts)})"
    return f"({emitter.statement(f'SELECT DISTINCT {held}, {text} AS finding FROM {relation.name}')})"


def _keys(source: ClosedSource) -> tuple[str, ...]:
    return (() if source.static or source.lasting else ("tick",)) + (("g",) if source.items else ())


def _base(source: ClosedSource, keys: tuple[str, ...], further: tuple[str, ...], axioms: Sequence[str]) -> str:
    where = " WHERE g IS NOT NULL" if source.items else ""
    names = [(source_name(source.base), 1), *((source_name(view), 2 << number) for number, (_, view) in enumerate(source.views))]
    if source.static and isinstance(source.base, MergedSource):
        names = [(source_name(part), 1) for part in source.base.parts] or [(_EMPTY, 1)]
    found = []
    for name, sight in names:
        listed = [*keys, "s", "p", "o", *(f"{fixed(NOTHING.token)} AS {c}" for c in further),
                  *([f"{sight} AS sight"] if source.views else [])]
        found.append(f"SELECT DISTINCT {', '.join([*listed, *_TYPED])} FROM {name}{where}")
    text = " UNION ".join([*found, *axioms])
    if source.background is None:
        return text
    behind = f"SELECT 1 FROM {closure_table(source.background.name)} h WHERE h.s = f.s AND h.p = f.p AND h.o = f.o"
    return f"SELECT * FROM ({text}) AS f WHERE NOT EXISTS ({behind})"


def _known(source: ClosedSource, columns: tuple[str, ...], further: tuple[str, ...], dialect: Dialect) -> str:
    """What is found and what the background holds, in each evaluation (and item): all of it, and what is beside something new."""
    own, listed = f"SELECT {', '.join(columns)} FROM {closure_table(source.name)}", ", ".join(columns)
    kept = {"known": state_table(source.name), "beside": beside_table(source.name) if dialect.finds_beside else state_table(source.name)}
    behind = _behind(source, further)
    return ", ".join(f"{source.name}_{word} AS {dialect.inline}({own}{f' UNION ALL SELECT {listed} FROM {table}' if source.lasting else ''}"
                     f"{behind})" for word, table in kept.items())


def _behind(source: ClosedSource, further: tuple[str, ...]) -> str:
    if source.background is None:
        return ""
    behind = width(source.background.rules)
    rest = [f"b.x{n + 3}" if n < behind else f"{fixed(NOTHING.token)} AS x{n + 3}" for n in range(len(further))]
    keys = _keys(source)
    always = [f"CAST({MIN} AS BIGINT) AS lo", "CAST(0 AS TINYINT) AS shown", f"CAST({MAX} AS BIGINT) AS hi"] if source.lasting else []
    always += [f"{all_sights(source)} AS sight"] if source.views else []
    listed = ", ".join([*(f"k.{key}" for key in keys), "b.s", "b.p", "b.o", *rest, *always, *(f"b.{c}" for c in _TYPED)])
    there = f" CROSS JOIN (SELECT DISTINCT {', '.join(keys)} FROM {closure_table(source.name)}) AS k" if keys else ""
    return f" UNION ALL SELECT {listed} FROM {closure_table(source.background.name)} b{there}"


def _step(step: Step, source: ClosedSource, identity: tuple[str, ...], shown: bool | None, dialect: Dialect, lowering: Lowering) -> str:
    emitter = Emitter(dialect, lowering, _typed(step) if lowering.quick else frozenset())
    relation = emitter.relation(step.plan)
    keys = [c for c in identity if c in ("tick", "g")]
    places = [c for c in identity if c not in (*keys, "lo", "shown", "sight")]
    terms = (*step.head, *(NOTHING,) * (len(places) - len(step.head)))
    cells = [f"{_token(term, emitter, dialect)} AS {place}" for place, term in zip(places, terms)]
    lasting = [] if shown is None else ["lo", f"CAST({int(shown)} AS TINYINT) AS shown", "hi"]
    sight = [f"{all_sights(source)} AS sight"] if source.views else []
    listed = ", ".join([*keys, *cells, *lasting, *sight, *_companions(step.head[2], relation, emitter)])
    return emitter.statement(f"SELECT {listed} FROM {relation.name}")


def _token(term: Term, emitter: Emitter, dialect: Dialect) -> str:
    return dialect.quote(term.token) if isinstance(term, Constant) else emitter.name(term)


def _companions(term: Term, relation: Relation, emitter: Emitter) -> list[str]:
    """The typed columns of a head's object: known of a constant or an object that was joined; of any other literal Python decides."""
    if isinstance(term, Variable) and term in relation.typed:
        return [f"{emitter.name(term)}{suffix} AS {column}" for suffix, column in zip(("_k", "_n", "_m"), _TYPED)]
    kind, number, micros = str(int(Kind.IRI)), "NULL", "NULL"
    if isinstance(term, Constant):
        known = typed(term.token)
        kind = str(int(known[0]))
        number, micros = "NULL" if known[1] is None else double(known[1]), "NULL" if known[2] is None else str(known[2])
    elif isinstance(term, Variable):
        first = f"substr({emitter.name(term)}, 1, 1)"
        kind = f"CASE {first} WHEN '<' THEN {int(Kind.IRI)} WHEN '_' THEN {int(Kind.BLANK)} ELSE {int(Kind.HARD)} END"
    return [f"CAST({kind} AS TINYINT) AS kind", f"CAST({number} AS DOUBLE) AS number", f"CAST({micros} AS BIGINT) AS micros"]


def _typed(step: Step) -> frozenset[Variable]:
    """Variables whose types matter: what is tested, computed with, or becomes an object."""
    read = [variables_of(f.condition if isinstance(f, Test) else f.expression) for f in step.rule.body if isinstance(f, (Test, Assign))]
    object_ = step.head[2]
    return frozenset((object_,) if isinstance(object_, Variable) else ()).union(*read)
