"""Closures under rules as SQL: the text of one round, which an executor repeats until it finds nothing new (semi-naive).

A closure is a relation of columns ``tick`` (where its facts hold at each T for itself), ``g`` where it is of each item by itself, then
``s p o``, the further terms of long atoms ``x3 x4 ...``, of one with intervals the points ``lo hi``, and the typed companions of ``o``.
One with intervals has for each begin of a derived fact a row with its last end, unless an earlier one lasts as long. A round reads all
that is ``{name}_known``, and where that will do what is ``{name}_beside`` its new rows (closing.py).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.functions.typed import Kind
from engine.ir.expressions import variables_of, walk
from engine.ir.rules import Assign, Atom, Falsum, Role, Rule, Table, Test, tokens_of
from engine.ir.strata import endless, strata
from engine.ir.terms import Constant, Term, Variable
from engine.plan.derive import NOTHING, Step, all_sights, axiom, is_axiom, properties_read, row_of, shapes, steps, whole, width
from engine.plan.nodes import Begun, ClosedSource, Exchange, StaticSource, ValiditySource, ViewSource, leaf_sources
from engine.sql.closing import CheckText, Closing, ExchangeText, Kept, StepText, Stratum, part_table
from engine.sql.dialect import DUCKDB, Dialect, fixed
from engine.sql.emit import Emitter
from engine.sql.equality import Equality, part_of
from engine.sql.functions.values import constant_companions
from engine.sql.lower import Lowering
from engine.sql.relation import MOST_INLINE, Constants, Relation
from engine.sql.sources import AT_HOME, closure_table, graph_table, source_name
from engine.timeline import MAX, MIN

_TYPED = ("kind", "number", "micros")
_COVERS = {"lo": "<=", "reported": ">=", "sight": ">="}    # how a known row stands to a derived one that it makes superfluous
NO_TIMES = "ticks AS (SELECT CAST(0 AS BIGINT) AS tick)"
_EMPTY = {"kind": "CAST(0 AS TINYINT)", "number": "CAST(0 AS DOUBLE)", "micros": "CAST(0 AS BIGINT)"}
_NO_TOKEN = "''"
_ALWAYS = {"lo": f"CAST({MIN} AS BIGINT) AS lo", "hi": f"CAST({MAX} AS BIGINT) AS hi"}


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ClosureText:
    """How a closure is computed: it starts with `base` (over the texts of the sources) as what is known and new; then the steps of each
    stratum give what is new until that is nothing. They read the tables ``{name}_all`` and ``{name}_new``, and those of `constants`; joins
    see what is `known`, and where the closure is kept what is `known_kept`. By representatives (`equality`) they see what is
    `known_same`, and `known` is what these stand for."""

    source: ClosedSource
    columns: tuple[str, ...]
    identity: tuple[str, ...]
    base: str
    known: str
    known_kept: str
    strata: tuple[Stratum, ...]
    checks: tuple[CheckText, ...]
    constants: Mapping[str, Constants]
    equality: Equality | None = None
    known_same: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    def ready(self, prefix: Sequence[str], kept: Kept | None = None) -> Closing:
        """The statements for an evaluation; `prefix` are the texts of the sources of its base, the evaluation times first. Those of a
        static closure are the same in each; of one that is kept the base has what is new on its streams."""
        source = self.source
        # Not the evaluation times themselves, so that the text of a round is the same at each.
        times = f"ticks AS (SELECT DISTINCT tick FROM {closure_table(self.name)})" if "tick" in source.keys else NO_TIMES
        same = " AND ".join([*(f"k.{c} {_COVERS.get(c, '=')} f.{c}" for c in self.identity),
                             *(["k.hi >= f.hi"] if source.has_intervals else [])])
        best = ["max(hi) AS hi"] if source.has_intervals else []
        merged = ", ".join([*self.identity, *best, *(f"min({c}) AS {c}" for c in _TYPED)])
        goes_on = kept is not None or source.exchange is not None
        known = f"WITH {times}, {self.known_kept if goes_on else self.known}"
        seen = f"WITH {times}, {self.known_same}" if self.equality else known
        before = f"{seen} SELECT {', '.join(self.columns)} FROM (SELECT {merged} FROM ("
        after = (f") AS d GROUP BY {', '.join(self.identity)}) AS f "
                 f"WHERE NOT EXISTS (SELECT 1 FROM {self.name}_known k WHERE {same})")
        behind = (closure_table(source.background.name),) if source.background else ()
        if self.equality and source.background:
            behind = (self.equality.part("behind"),)
        first = f"WITH {', '.join((NO_TIMES,) if source.is_static else prefix)} {self.base}"
        graphs = tuple(graph_table(leaf.iri) for leaf in leaf_sources(source) if isinstance(leaf, StaticSource))
        exchange = None if source.exchange is None else _exchange_text(source.exchange, self.columns)
        return Closing(self.name, first, self.strata, before, after, self.checks, known, source.is_static, behind, graphs, kept,
                       self.equality, exchange)


def closure_text(source: ClosedSource, dialect: Dialect, lowering: Lowering, reported: Role | None = None,
                 atoms_only: bool = False) -> ClosureText:
    """The texts of a closure; what rules of the role `reported` derive has 1 in a column of that name. With `atoms_only` or `reported`
    nothing else is asked for, so the closure starts from those facts only that rules read. Raises Unstratified for rules that depend on
    their own negation."""
    keys = source.keys
    further = tuple(f"x{number + 3}" for number in range(width(source.rules)))
    points = ("lo",) if source.has_intervals else ()
    identity = (*keys, "s", "p", "o", *further, *points, *(("reported",) if reported else ()), *(("sight",) if source.view_lengths else ()))
    columns = (*identity, *(("hi",) if source.has_intervals else ()), *_TYPED)

    constants: dict[str, Constants] = {}

    def text(step: Step) -> str:
        return f"({_step(step, source, identity, reported, constants, dialect, lowering)})"

    layers = strata(rule for rule in source.rules if isinstance(rule.head, Atom) and not is_axiom(rule))
    texts = tuple(Stratum(tuple(StepText(number, step.new, step.known, step.ends, text(step))
                                for number, rule in enumerate(layer) for step in steps(rule, source)), endless(layer)) for layer in layers)
    started = [rule for rule in source.rules if is_axiom(rule)] if source.background is None else []
    axioms = [text(axiom(rule, source)) for rule in started if rule.body]
    axioms += _facts([rule for rule in started if not rule.body], source, columns, reported, constants, dialect)
    checks = tuple(CheckText(shapes(rule), _check(rule, source, constants, dialect, lowering))
                   for rule in source.rules if isinstance(rule.head, Falsum))
    read = properties_read(source.rules) if atoms_only or reported else None
    base = _base(source, columns, read, dialect, axioms)
    known, known_kept = (_known(source, columns, further, dialect, kept) for kept in (False, True))
    made = ClosureText(source, columns, identity, base, known, known_kept, texts, checks, constants)
    if not source.by_representatives:
        return made
    named = Constants(tuple((token,) for token in sorted(_named(source.rules))))
    constants[name := named.name] = named
    equality = _equality(source, columns, identity, further, name)
    return replace(made, equality=equality, known_same=_known_same(source, columns, dialect))


def _named(rules: Sequence[Rule]) -> set[str]:
    """The terms that rules name."""
    found: set[str] = set()
    for part in (part for rule in rules for part in (rule.head, *rule.body)):
        match part:
            case Atom(terms=terms):
                found |= {term.token for term in terms if isinstance(term, Constant)}
            case Table(rows=rows):
                found |= {cell.token for row in rows for cell in row}
            case Test(condition=read) | Assign(expression=read):
                found |= {inner.token for inner in walk(read) if isinstance(inner, Constant)}
    return found


def _equality(source: ClosedSource, columns: tuple[str, ...], identity: tuple[str, ...], further: tuple[str, ...], named: str) -> Equality:
    terms, behind = ("s", "p", "o", *further), source.background
    if behind is None:
        return Equality(source.name, source.keys, terms, columns, identity, named)
    facts = part_of(behind.name, "facts")
    seen = _behind(source, columns, further, facts, part_of(source.name, "graphs"))
    return Equality(source.name, source.keys, terms, columns, identity, named, behind.name, seen, terms[:3 + width(behind.rules)])


def _known_same(source: ClosedSource, columns: tuple[str, ...], dialect: Dialect) -> str:
    """What is known while the facts are those of representatives."""
    tables = [closure_table(source.name), *([part_of(source.name, "behind")] if source.background else [])]
    facts = " UNION ALL ".join(f"SELECT {', '.join(columns)} FROM {table}" for table in tables)
    return ", ".join(f"{source.name}_{word} AS {dialect.inline}({facts})" for word in ("known", "beside"))


def _check(rule: Rule, source: ClosedSource, constants: dict[str, Constants], dialect: Dialect, lowering: Lowering) -> str:
    """Where the body of a rule with head ``false`` holds: its name and its bindings, as text."""
    emitter = Emitter(dialect, lowering, frozenset(), constants=constants)
    relation = emitter.relation(whole(rule, source))
    held = "2 * tick - 1 AS lo, 2 * tick - 1 AS hi"
    if source.is_static or source.has_intervals:
        held = "lo, hi" if relation.intervals else ", ".join(_ALWAYS.values())
    shown = sorted(v for v in relation.variables if v.visible)
    parts = [dialect.quote(f"{rule.name or 'false'}:"), *(f"concat({dialect.quote(f' ?{v.name} = ')}, {emitter.name(v)})" for v in shown)]
    text = f"concat({', '.join(parts)})"
    return f"({emitter.statement(f'SELECT DISTINCT {held}, {text} AS finding FROM {relation.name}')})"


def _exchange_text(exchange: Exchange, columns: tuple[str, ...]) -> ExchangeText:
    """What shards have, and send each other, as conditions of rows."""
    at_home, by_object = f"{AT_HOME}(s)", _among("p", exchange.by_object)
    sent = [f"{_among('p', properties)} AND {_among('o', classes)}" for properties, classes in exchange.sent]
    away = f"NOT {at_home} OR {by_object} AND NOT {AT_HOME}(o)"
    return ExchangeText(columns, f"({at_home} OR {by_object} AND {AT_HOME}(o))", f"({' OR '.join(sent)}) AND ({away})" if sent else "")


def _of_shard(exchange: Exchange, step: Step, tokens: Sequence[str]) -> str:
    """What of a step a shard is to have or to send, as a condition of the `tokens` of a row; empty: all of it. What a head can be is known
    from its rule, so that little is asked of each row."""
    subject, property_, object_, *_ = tokens
    properties, objects = (tokens_of(step.head[place], step.rule) for place in (1, 2))
    sent = [(_can_be(property_, properties, of), _can_be(object_, objects, classes)) for of, classes in exchange.sent]
    by_object = _can_be(property_, properties, exchange.by_object), f"{AT_HOME}({object_})"
    tests = [[test for test in both if test != "TRUE"] for both in ((f"{AT_HOME}({subject})",), *sent, by_object) if "FALSE" not in both]
    return "" if [] in tests else " OR ".join(dict.fromkeys(" AND ".join(both) for both in tests))


def _can_be(column: str, known: frozenset[str] | None, tokens: frozenset[str] | None) -> str:
    """Whether a column, which has one of the `known` tokens (None: any), has one of some tokens (None: any)."""
    if tokens is None or known is not None and known <= tokens:
        return "TRUE"
    return _among(column, tokens if known is None else tokens & known)


def _among(column: str, tokens: Collection[str] | None, dialect: Dialect = DUCKDB) -> str:
    """Whether a column has one of some tokens (None: any)."""
    listed = ", ".join(map(dialect.quote, sorted(tokens or ())))
    return "TRUE" if tokens is None else f"{column} IN ({listed})" if tokens else "FALSE"


def _base(source: ClosedSource, columns: Sequence[str], read: Collection[str] | None, dialect: Dialect, axioms: Sequence[str]) -> str:
    """The facts that a closure starts from; where `read` is given of those properties only. No given fact is
    among both those that a shard has for their subjects and those that it has for their objects only."""
    found, brought = list[str](), list[str]()
    for part in source.base:
        asked = [*(["g IS NOT NULL"] if source.has_items else []), *([] if read is None else [_among("p", read, dialect)])]
        rows = found
        if isinstance(part, ValiditySource) and part.by_object:
            rows = brought
        sight = 2 << source.view_lengths.index(part.length_ms) if isinstance(part, ViewSource) else 1
        made = {"reported": "CAST(0 AS TINYINT) AS reported", "sight": f"{sight} AS sight"}
        listed = [f"{fixed(NOTHING.token)} AS {c}" if c.startswith("x") else made.get(c, c) for c in columns]
        rows.append(f"SELECT DISTINCT {', '.join(listed)} FROM {source_name(part)}" + (f" WHERE {' AND '.join(asked)}" if asked else ""))
    if not found:
        listed = [f"{_EMPTY.get(c, _NO_TOKEN)} AS {c}" for c in columns]
        found.append(f"SELECT {', '.join(listed)} WHERE FALSE")
    text = " UNION ".join([*found, *axioms])
    if brought:
        text = f"({text}) UNION ALL ({' UNION '.join(brought)})"
    if source.background is None or source.by_representatives:  # of the latter what the background has as well is told later
        return text
    behind = f"SELECT 1 FROM {closure_table(source.background.name)} h WHERE h.s = f.s AND h.p = f.p AND h.o = f.o"
    return f"SELECT * FROM ({text}) AS f WHERE NOT EXISTS ({behind})"


def _facts(rules: Sequence[Rule], source: ClosedSource, columns: tuple[str, ...], reported: Role | None, constants: dict[str, Constants],
           dialect: Dialect) -> list[str]:
    """Rules without a body as one relation: a schema of 100,000 axioms entails several times as many facts."""
    if not rules:
        return []
    terms = [c for c in columns if c in "spo" or c.startswith("x")]
    assert not source.keys, "what holds at each T stands in the background"
    heads = [row_of(rule.head) for rule in rules if isinstance(rule.head, Atom)]     # all of them: is_axiom
    rows = [tuple(term.token for term in head if isinstance(term, Constant)) for head in heads]     # without a body there is no variable
    rows = [row + (NOTHING.token,) * (len(terms) - len(row)) for row in rows]
    made = {**_ALWAYS, "sight": f"{all_sights(source)} AS sight"}
    if len(rows) > MOST_INLINE and not reported:
        given = Constants(tuple(rows), terms.index("o"))
        constants[name := given.name] = given
        made |= {term: f"c{number} AS {term}" for number, term in enumerate(terms)}
        return [f"(SELECT {', '.join(made.get(c, c) for c in columns)} FROM {name})"]
    types = {"reported": "TINYINT", "kind": "TINYINT", "number": "DOUBLE", "micros": "BIGINT"}
    made |= {column: f"CAST({column} AS {type_}) AS {column}" for column, type_ in types.items()}
    written = [", ".join([*map(dialect.quote, row), *([str(int(rule.role == reported))] if reported else []),
                          *constant_companions(row[terms.index("o")])]) for rule, row in zip(rules, rows)]
    given_columns = [c for c in columns if c not in ("lo", "hi", "sight")]
    return [f"(SELECT {', '.join(made.get(c, c) for c in columns)} FROM (VALUES {', '.join(f'({row})' for row in written)}) "
            f"AS a({', '.join(given_columns)}))"]


def _known(source: ClosedSource, columns: tuple[str, ...], further: tuple[str, ...], dialect: Dialect, kept: bool) -> str:
    """What is known: all of it, and what stands beside new rows. With `kept`, also what evaluations before have found."""
    own, listed = f"SELECT {', '.join(columns)} FROM {closure_table(source.name)}", ", ".join(columns)
    states = {"known": part_table(source.name, "state"), "beside": part_table(source.name, "kept_beside")}
    behind = ""
    if source.background is not None:
        graphs = part_of(source.name, "graphs") if source.by_representatives else closure_table(source.name)
        seen = _behind(source, columns, further, closure_table(source.background.name), graphs)
        behind = f" UNION ALL {seen}"
    return ", ".join(f"{source.name}_{word} AS {dialect.inline}({own}{f' UNION ALL SELECT {listed} FROM {table}' if kept else ''}{behind})"
                     for word, table in states.items())


def _behind(source: ClosedSource, columns: tuple[str, ...], further: tuple[str, ...], facts: str, graphs: str) -> str:
    """Those `facts` of the background, in each of the `graphs` that a relation has rows of."""
    assert source.background is not None
    behind, keys = width(source.background.rules), source.keys
    made = {key: f"k.{key}" for key in keys}
    made |= {c: f"b.{c}" if n < behind else f"{fixed(NOTHING.token)} AS {c}" for n, c in enumerate(further)}
    made |= {**_ALWAYS, "reported": "CAST(0 AS TINYINT) AS reported", "sight": f"{all_sights(source)} AS sight"}
    listed = ", ".join(made.get(c, f"b.{c}") for c in columns)
    there = f" CROSS JOIN (SELECT DISTINCT {', '.join(keys)} FROM {graphs}) AS k" if keys else ""
    return f"SELECT {listed} FROM {facts} b{there}"


def _step(step: Step, source: ClosedSource, identity: tuple[str, ...], reported: Role | None, constants: dict[str, Constants],
          dialect: Dialect, lowering: Lowering) -> str:
    emitter = Emitter(dialect, lowering, _typed(step) if lowering.quick else frozenset(), constants=constants)
    relation = emitter.relation(step.plan)
    places = [c for c in identity if c not in ("tick", "g", "lo", "reported", "sight")]
    terms = (*step.head, *(NOTHING,) * (len(places) - len(step.head)))
    tokens = [dialect.quote(term.token) if isinstance(term, Constant) else emitter.name(term) for term in terms]
    made = {place: f"{token} AS {place}" for place, token in zip(places, tokens)}
    made |= {"reported": f"CAST({int(step.rule.role == reported)} AS TINYINT) AS reported", "sight": f"{all_sights(source)} AS sight"}
    if not relation.intervals:  # it holds at all times
        made |= _ALWAYS
    cells = [made.get(c, c) for c in (*identity, *(("hi",) if source.has_intervals else ()))]
    listed = ", ".join([*cells, *_companions(step.head[2], relation, emitter)])
    wanted = "" if source.exchange is None else _of_shard(source.exchange, step, tokens)
    return emitter.statement(f"SELECT {listed} FROM {relation.name}{wanted and f' WHERE {wanted}'}")


def _companions(term: Term, relation: Relation, emitter: Emitter) -> list[str]:
    """The typed columns of a head's object: known of a constant or an object that was joined; of any other literal Python decides."""
    if isinstance(term, Variable) and term in relation.typed:
        return [f"{emitter.name(term)}{suffix} AS {column}" for suffix, column in zip(("_k", "_n", "_m"), _TYPED)]
    kind, number, micros = str(int(Kind.IRI)), "NULL", "NULL"
    if isinstance(term, Constant):
        kind, number, micros = constant_companions(term.token)
    elif isinstance(term, Variable):
        first = f"substr({emitter.name(term)}, 1, 1)"
        kind = f"CASE {first} WHEN '<' THEN {int(Kind.IRI)} WHEN '_' THEN {int(Kind.BLANK)} ELSE {int(Kind.HARD)} END"
    return [f"CAST({kind} AS TINYINT) AS kind", f"CAST({number} AS DOUBLE) AS number", f"CAST({micros} AS BIGINT) AS micros"]


def _typed(step: Step) -> frozenset[Variable]:
    """Variables whose types matter: what is tested, computed with, or becomes an object."""
    read = [variables_of(f.condition if isinstance(f, Test) else f.expression) for f in step.rule.body if isinstance(f, (Test, Assign))]
    object_ = step.head[2]
    return frozenset((object_,) if isinstance(object_, Variable) else ()).union(*read)


def begun_text(plan: Begun) -> str:
    """Rows ``tick s p o x3 ... hi``: of the facts that are reported those that begin at T and hold longer than was known before."""
    table = closure_table(plan.source.name)
    terms = ["s", "p", "o", *(f"x{number + 3}" for number in range(width(plan.source.rules)))]
    same = " AND ".join(f"e.{term} = c.{term}" for term in terms)
    longer = "(e.lo < c.lo AND e.hi >= c.hi OR e.lo = c.lo AND e.hi > c.hi)"
    known = f"SELECT 1 FROM {table} e WHERE e.reported = 1 AND {same} AND {longer}"
    return (f"SELECT k.tick, {', '.join(f'c.{term}' for term in terms)}, c.hi FROM {table} c JOIN ticks k ON c.lo = 2 * k.tick - 1 "
            f"WHERE c.reported = 1 AND NOT EXISTS ({known})")
