"""Plan leaves as SQL: scans, stars, inline data; and transitive closures, by recursion inside the text in DuckDB, in Spark found before the
text (engine/spark/graphs.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.functions.typed import Kind
from engine.ir.terms import Constant, OneOf, PatternTerm, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan
from engine.sql.dialect import Dialect
from engine.sql.functions.values import NULL_STRING
from engine.sql.relation import COMPANIONS, MOST_INLINE, Constants, Relation, key_condition, named, typed_columns

if TYPE_CHECKING:
    from engine.sql.emit import Emitter


def unit(emitter: Emitter, plan: nodes.Unit) -> Relation:
    """The relation with one row and no variable."""
    return Relation(emitter.add("SELECT 1 AS u"), (), "", ())


def scan(emitter: Emitter, plan: nodes.Scan) -> Relation:
    """The matches of one triple pattern: a set, as a graph is."""
    source, keys, repeats = emitter.read(plan.source)
    where: list[str] = []
    places: dict[Variable, str] = {}
    rest = [(f"x{number}", term) for number, term in enumerate(plan.rest, 3)]
    for column, term in (*zip("spo", plan.terms), *rest, ("g", plan.graph)):
        if column == "p" and (number := emitter.place_in_star(plan.source, plan.terms[1])) is not None:
            where.append(f"nth = {number}")
        else:
            place(emitter.dialect, column, term, places, where)
    if plan.sight:
        where.append(f"(sight & {plan.sight}) <> 0")
    typed = {v: emitter.kinds_in(plan.source) for v, column in places.items() if column == "o" and v in emitter.typed}
    select = [*keys]
    for variable, column in places.items():
        select.append(f"{column} AS {emitter.name(variable)}")
        if variable in typed:
            select += typed_columns(emitter.name(variable))
    intervals = isinstance(plan.source, (nodes.KnownSource, nodes.FreshSource, nodes.StarSource)) and plan.source.closed.has_intervals
    select += ["lo", "hi"] if intervals else []
    distinct = "DISTINCT " if repeats or plan.sight or any(isinstance(t, OneOf) for t in plan.terms) else ""
    text = f"SELECT {distinct}{', '.join(select) or '1 AS u'} FROM {source}"
    name = emitter.add(text + (f" WHERE {' AND '.join(where)}" if where else ""))
    bound = tuple(places)
    return Relation(name, keys, spine(source, keys), bound, frozenset(bound), typed, intervals=intervals)


def spine(source: str, keys: tuple[str, ...]) -> str:
    """A relation that lists the values of the keys."""
    return source if "g" in keys else "ticks" if keys else ""


def place(dialect: Dialect, column: str, term: PatternTerm | None, places: dict[Variable, str], where: list[str]) -> None:
    """Note what a term asks of a column: a variable's first column goes to `places`, a condition to `where`."""
    match term:
        case Constant(token=token):
            where.append(f"{column} = {dialect.quote(token)}")
        case OneOf(tokens=tokens):
            where.append(f"{column} IN ({', '.join(map(dialect.quote, tokens))})")
        case Variable() if term in places:
            where.append(f"{column} = {places[term]}")
        case Variable():
            places[term] = column
            if column == "g":
                where.append("g IS NOT NULL")


def _graph(emitter: Emitter, graph: Term | None) -> tuple[tuple[Variable, ...], str]:
    """The variable of a graph's name, if it is one, and what its name asks of the rows."""
    places, where = dict[Variable, str](), list[str]()
    place(emitter.dialect, "g", graph, places, where)
    return tuple(places), "".join(f" WHERE {condition}" for condition in where)


def sample(emitter: Emitter, plan: nodes.Sample) -> Relation:
    """What is kept and seen at T."""
    read, listed, relation = sampled(emitter, plan)
    source, keys, _ = emitter.read(read)
    return replace(relation, name=emitter.add(f"SELECT {', '.join([*keys, *named(listed)])} FROM {source}"))


def sampled(emitter: Emitter, plan: nodes.Sample) -> tuple[nodes.KeptSource, tuple[tuple[str, str], ...], Relation]:
    """The source of a sample, its columns with their names in the plan, and what relation these are."""
    names = dict(zip(plan.source.variables, plan.variables))
    typed = {own: emitter.kinds_in(plan.source.scans[number].source) for own, number in plan.source.objects.items()
             if names[own] in emitter.typed}
    listed = []
    for own, variable in names.items():
        column = emitter.name(variable)
        listed += [(own.name + suffix, column + suffix) for suffix in ("", *(COMPANIONS if own in typed else ()))]
    kinds = {names[own]: found for own, found in typed.items()}
    return replace(plan.source, typed=frozenset(typed)), tuple(listed), Relation(
        "", ("tick",), "ticks", plan.variables, frozenset(plan.variables), kinds)


def ends(emitter: Emitter, plan: nodes.Nodes) -> Relation:
    """Every subject and object."""
    source, keys, _ = emitter.read(plan.source)
    graphs, where = _graph(emitter, plan.graph)
    listed = [f"g AS {emitter.name(v)}" for v in graphs]
    sides = [f"SELECT {', '.join([*keys, f'{c} AS {emitter.name(plan.variable)}', *listed])} FROM {source}{where}" for c in "so"]
    bound = (plan.variable, *graphs)
    return Relation(emitter.add(" UNION ".join(sides)), keys, "ticks" if keys else "", bound, frozenset(bound))


def stamps(emitter: Emitter, plan: nodes.Stamps) -> Relation:
    """The latest time of each triple, or of each item, in the windows of a source; graphs have no times."""
    leaves = nodes.leaf_sources(plan.source)
    windows = [emitter.read(nodes.WindowSource(index))[0] for index in nodes.windows_of(
        leaf for leaf in leaves if not isinstance(leaf, nodes.ViewSource))]
    graphs, where = _graph(emitter, plan.graph)
    names = [*(f"{column} AS {emitter.name(v)}" for column, v in zip("spo", plan.terms)), *(f"g AS {emitter.name(v)}" for v in graphs)]
    by = ["tick", *(name.split(" ")[0] for name in names)]
    select = f"SELECT {', '.join(['tick', *names, 'max(t) AS t'])} FROM"
    facts = " UNION ALL ".join(f"SELECT tick, g, s, p, o, t FROM {name}" for name in windows)
    if not facts:
        facts = "SELECT tick, '' AS g, '' AS s, '' AS p, '' AS o, CAST(0 AS BIGINT) AS t FROM ticks WHERE FALSE"
    latest = emitter.add(f"{select} ({facts}) AS f{where} GROUP BY {', '.join(by)}")
    keys = dict.fromkeys((*plan.terms, *graphs))
    return _moments(emitter, latest, tuple(keys), plan.variable)


def window_times(emitter: Emitter, plan: nodes.WindowTimes) -> Relation:
    """The opening or closing time of each window at T."""
    side = "low" if plan.opens else "high"
    rows = [f"SELECT tick, {emitter.dialect.quote(name)} AS {emitter.name(plan.name)}, {side} AS t FROM {emitter.times(index)}"
            for name, index in plan.windows]
    return _moments(emitter, emitter.add(" UNION ALL ".join(rows)), (plan.name,), plan.variable)


def _moments(emitter: Emitter, relation: str, keys: tuple[Variable, ...], variable: Variable) -> Relation:
    """A relation's milliseconds ``t`` as dateTimes."""
    column = emitter.name(variable)
    token = f"CASE WHEN t IS NOT NULL THEN {emitter.moment('coalesce(t, CAST(0 AS BIGINT))')} END AS {column}"
    typed = [f"CAST({int(Kind.DATETIME)} AS TINYINT) AS {column}_k", f"CAST(NULL AS DOUBLE) AS {column}_n", f"t * 1000 AS {column}_m"]
    name = emitter.add(f"SELECT {', '.join(['tick', *map(emitter.name, keys), token, *typed])} FROM {relation}")
    return Relation(name, ("tick",), "ticks", (*keys, variable), frozenset(keys), {variable: frozenset((int(Kind.DATETIME),))})


def star(emitter: Emitter, plan: nodes.Star) -> Relation:
    """Scans with one subject: in Spark one group-by on the subject, each object a set that is exploded; in DuckDB plain joins."""
    subject = plan.scans[0].subject
    objects = [s.object for s in plan.scans if isinstance(s.object, Variable)]
    groupable = len(set(objects)) == len(objects) and subject not in objects and all(
        isinstance(s.predicate, Constant) and not isinstance(s.object, OneOf) and s.graph is None for s in plan.scans)
    if emitter.dialect.stars and groupable and isinstance(subject, Variable):
        return _grouped_star(emitter, plan, subject)
    joined: Plan = plan.scans[0]
    for arm in plan.scans[1:]:
        joined = nodes.Join(joined, arm)
    return emitter.relation(joined)


def _grouped_star(emitter: Emitter, star: nodes.Star, subject: Variable) -> Relation:
    source, keys, _ = emitter.read(star.scans[0].source)
    quote, grouped, having, explode = emitter.dialect.quote, [], [], []
    typed = {s.object: emitter.kinds_in(s.source) for s in star.scans if isinstance(s.object, Variable) and s.object in emitter.typed}
    select = [*keys, f"{emitter.name(subject)}"]
    for number, scan in enumerate(star.scans):
        assert isinstance(scan.predicate, Constant)
        test = f"p = {quote(scan.predicate.token)}"
        if isinstance(scan.object, Constant):
            having.append(f"bool_or({test} AND o = {quote(scan.object.token)})")
            continue
        assert isinstance(scan.object, Variable)
        value = "named_struct('o', o, 'kind', kind, 'number', number, 'micros', micros)"
        grouped.append(f"collect_set(CASE WHEN {test} THEN {value} END) AS l{number}")
        having.append(f"bool_or({test})")
        explode.append(f"LATERAL VIEW explode(l{number}) AS e{number}")
        column = emitter.name(scan.object)
        select.append(f"e{number}.o AS {column}")
        if scan.object in typed:
            select += typed_columns(column, f"e{number}.")
    predicates = ", ".join(sorted({quote(s.predicate.token) for s in star.scans if isinstance(s.predicate, Constant)}))
    by = ", ".join([*keys, "s"])
    inner = (f"SELECT {', '.join([*keys, f's AS {emitter.name(subject)}', *grouped])} FROM {source} WHERE p IN ({predicates}) "
             f"GROUP BY {by} HAVING {' AND '.join(having)}")
    bound = (subject, *(s.object for s in star.scans if isinstance(s.object, Variable)))
    name = emitter.add(f"SELECT {', '.join(select)} FROM ({inner}) AS stars {' '.join(explode)}")
    return Relation(name, keys, "ticks" if keys else "", bound, frozenset(bound), typed)


def values(emitter: Emitter, plan: nodes.Values) -> Relation:
    names = [emitter.name(v) for v in plan.variables]
    certain = frozenset(v for i, v in enumerate(plan.variables) if all(row[i] is not None for row in plan.rows))
    if emitter.constants is not None and len(plan.rows) > MOST_INLINE and names:
        given = Constants(tuple(tuple(c.token if c else None for c in row) for row in plan.rows))
        emitter.constants[relation := given.name] = given
        listed = ", ".join(f"c{number} AS {name}" for number, name in enumerate(names))
        return Relation(emitter.add(f"SELECT {listed} FROM {relation}"), (), "", plan.variables, certain)
    rows = [", ".join(emitter.dialect.quote(c.token) if c else NULL_STRING for c in row) for row in plan.rows]
    if rows and names:
        text = f"SELECT {', '.join(names)} FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS v({', '.join(names)})"
    else:
        empty = ", ".join(f"{NULL_STRING} AS {n}" for n in names) or "1 AS u"
        text = " UNION ALL ".join("SELECT 1 AS u" for _ in rows) or f"SELECT {empty} WHERE FALSE"
    return Relation(emitter.add(text), (), "", plan.variables, certain)


def given(emitter: Emitter, plan: nodes.Given) -> Relation:
    """What is given for each evaluation (engine/sql/lots.py)."""
    typed = {v: kinds for v, kinds in zip(plan.variables, plan.kinds) if v in emitter.typed}
    select = ["tick"]
    for variable, column in zip(plan.variables, plan.columns):
        name = emitter.name(variable)
        select.append(f"{column} AS {name}")
        select += [f"{column}{suffix} AS {name}{suffix}" for suffix in COMPANIONS if variable in typed]
    name = emitter.add(f"SELECT {', '.join(select)} FROM {plan.name}")
    return Relation(name, ("tick",), "ticks", plan.variables, plan.certain, typed)


@dataclass(frozen=True, slots=True)
class Rounds:
    """A closure that Spark computes before the rest of the text runs. `edges` and `base` name relations among the first `before` ones of
    the text: pairs ``x y`` within the `within` columns. The result is read from the view `view`. `seeded` closures are extended at their
    end only."""

    view: str
    before: int
    edges: str
    base: str
    within: tuple[str, ...]
    seeded: bool


def reach(emitter: Emitter, plan: nodes.Reach) -> Relation:
    """The pairs that steps of `plan.step` connect, one or more."""
    step = emitter.relation(plan.step)
    graph = [emitter.name(plan.graph)] if plan.graph is not None else []
    within = (*step.keys, *graph)
    start, end = (emitter.name(v) for v in plan.ends)
    edges = emitter.add(f"SELECT DISTINCT {', '.join([*within, f'{start} AS x', f'{end} AS y'])} FROM {step.name}")
    base = _seeded(emitter, plan, edges, step.keys)
    closed = emitter.close(edges, base or edges, within, base is not None)
    renamed = [f"x AS {emitter.name(plan.first)}", f"y AS {emitter.name(plan.last)}"]
    name = emitter.add(f"SELECT {', '.join([*within, *renamed])} FROM {closed}")
    bound = (plan.first, plan.last, *((plan.graph,) if plan.graph is not None else ()))
    return Relation(name, step.keys, step.spine, bound, frozenset(bound))


def _seeded(emitter: Emitter, plan: nodes.Reach, edges: str, keys: tuple[str, ...]) -> str | None:
    """The edges that leave a value of the seed; None where a row of the seed may leave it open, so that all count."""
    seed = emitter.relation(plan.seed) if plan.seed is not None else None
    if seed is None or plan.first not in seed.certain:
        return None
    common = [key for key in keys if key in seed.keys]
    start = emitter.name(plan.first)
    same = " AND ".join(["a.x = b.v", *key_condition(keys, seed.keys)])
    starts = f"SELECT DISTINCT {', '.join([*common, f'{start} AS v'])} FROM {seed.name}"
    return emitter.add(f"SELECT a.* FROM {edges} a JOIN ({starts}) AS b ON {same}")


def recursion(name: str, edges: str, base: str, within: tuple[str, ...]) -> str:
    """The query of a recursive relation `name` (standard SQL: UNION keeps it a set)."""
    held = "".join(f"a.{column}, " for column in within)
    same = " AND ".join(["a.y = b.x", *key_condition(within, within)])
    columns = ", ".join([*within, "x", "y"])
    return f"SELECT {columns} FROM {base} UNION SELECT {held}a.x, b.y FROM {name} a JOIN {edges} b ON {same}"
