"""Logical plan -> SQL text: one common table expression per node, the same for both executors but for `dialect`.

The recipes and the traps behind them were checked against an independent engine (docs/decisions.md, "SPARQL to SQL"): three-valued
logic for errors, LeftJoin as ON, MINUS with its shared-variable clause, EXISTS seeded from the outer rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.ir.expressions import Aggregate as AggregateCall
from engine.ir.expressions import Expression, variables_of
from engine.ir.terms import Constant, OneOf, PatternTerm, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import Plan, Source
from engine.spark.dialect import Dialect
from engine.spark.lower import Columns, Lowering, encode, is_volatile
from engine.spark.relation import COMPANIONS, Namer, Relation, columns, compatible, joined_columns, key_condition
from engine.spark.sources import source_name, source_texts

TYPED_COLUMNS = ("kind", "number", "micros")
INTEGER_SUFFIX = '"^^<http://www.w3.org/2001/XMLSchema#integer>'


@dataclass(frozen=True, slots=True)
class PlanText:
    """The text of a plan: `body` follows the relations of the ticks and windows (sources.py); columns in order of `variables`."""

    body: str
    variables: tuple[Variable, ...]
    names: tuple[str, ...]
    ordered: bool
    sources: tuple[Source, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


class Emitter:
    """Emits one plan; create anew for each."""

    def __init__(self, dialect: Dialect, lowering: Lowering, typed: frozenset[Variable]) -> None:
        self.dialect = dialect
        self.lowering = lowering
        self.typed = typed
        self.name = Namer()
        self._texts: list[str] = []
        self._done: dict[int, tuple[Plan, Relation]] = {}
        self._sources: dict[Source, None] = {}

    def text(self, plan: Plan, variables: tuple[Variable, ...]) -> PlanText:
        """The whole plan with one row per solution and evaluation time: ``at``, ``ord`` where ordered, a column per variable."""
        relation = self._timed(self.relation(plan))
        have = [self.name(v) if v in relation.variables else f"CAST(NULL AS STRING) AS {self.name(v)}" for v in variables]
        order = ["ord"] if relation.ordered else []
        select = f"SELECT {', '.join(['tick', *order, *have])} FROM {relation.name}"
        return self._finish(select, variables, relation.ordered)

    def graph_text(self, plan: Plan, template: tuple[tuple[Term, Term, Term], ...]) -> PlanText:
        """CONSTRUCT: the distinct well-formed triples of the template's instances (SPARQL 1.1 section 16.2)."""
        relation = self._timed(self.relation(plan))
        listed = columns(relation, self.name, order=False)
        fresh = any(isinstance(t, Variable) and t.name.startswith("_:") for triple in template for t in triple)
        if fresh:
            relation = self._numbered(relation, listed)
        parts = []
        for triple in template:
            s, p, o = (self._instance(term, relation) for term in triple)
            parts.append(f"SELECT tick, {s} AS s, {p} AS p, {o} AS o FROM {relation.name}")
        union = " UNION ALL ".join(parts) or "SELECT tick, '' AS s, '' AS p, '' AS o FROM ticks WHERE FALSE"
        good = "substr(s, 1, 1) <> '\"' AND substr(p, 1, 1) = '<' AND o IS NOT NULL"
        return self._finish(f"SELECT DISTINCT tick, s, p, o FROM ({union}) AS made WHERE {good}",
                            tuple(map(Variable, "spo")), False, ("s", "p", "o"))

    def _finish(self, select: str, variables: tuple[Variable, ...], ordered: bool, names: tuple[str, ...] = ()) -> PlanText:
        body = ",\n".join(self._texts)
        named = names or tuple(self.name(v) for v in variables)
        return PlanText(f"{body}\n{select}" if body else select, variables, named, ordered, tuple(self._sources))

    def _numbered(self, relation: Relation, listed: list[str]) -> Relation:
        """A solution's identity: its values, and its number among equal ones."""
        cells = ", ".join(f"coalesce({c}, '')" for c in listed if c != "tick" and not c.endswith(COMPANIONS)) or "''"
        over = ", ".join(listed)
        made = self._add(f"SELECT *, md5(concat_ws(' ', {self.dialect.quote(self.lowering.context[0])}, CAST(tick AS STRING), {cells}, "
                         f"CAST(row_number() OVER (PARTITION BY {over} ORDER BY tick) AS STRING))) AS solution FROM {relation.name}")
        return replace(relation, name=made)

    def _instance(self, term: Term, relation: Relation) -> str:
        if isinstance(term, Constant):
            return self.dialect.quote(term.token)
        if term.name.startswith("_:"):
            return f"concat('_:c', solution, {self.dialect.quote('x' + term.name[2:].encode().hex())})"
        return self.name(term) if term in relation.variables else "CAST(NULL AS STRING)"

    # -- relations

    def relation(self, plan: Plan) -> Relation:
        """The relation of a plan node, emitted once."""
        if id(plan) not in self._done:
            self._done[id(plan)] = (plan, self._emit(plan))
        return self._done[id(plan)][1]

    def _add(self, select: str) -> str:
        name = f"n{len(self._texts)}"
        self._texts.append(f"{name} AS ({select})")
        return name

    def _emit(self, plan: Plan) -> Relation:
        match plan:
            case nodes.Unit():
                return Relation(self._add("SELECT 1 AS u"), (), "", ())
            case nodes.Scan():
                return self._scan(plan)
            case nodes.Nodes():
                return self._nodes(plan)
            case nodes.Star():
                return self._star(plan)
            case nodes.Values():
                return self._values(plan)
            case nodes.Join():
                return self._join(plan)
            case nodes.LeftJoin():
                return self._left_join(plan)
            case nodes.Minus():
                return self._minus(plan)
            case nodes.Union():
                return self._union(plan)
            case nodes.Seed():
                return self._seed(plan)
            case nodes.Mark():
                return self._mark(plan)
        return self._emit_unary(plan)

    def _emit_unary(self, plan: Plan) -> Relation:
        match plan:
            case nodes.Filter(input=below, condition=condition):
                relation = self._for(condition, self.relation(below))
                where = self.lowering.condition(condition, self._columns(relation))
                return replace(relation, name=self._add(f"SELECT * FROM {relation.name} WHERE {where}"))
            case nodes.Extend():
                return self._extend(plan)
            case nodes.Aggregate():
                return self._aggregate(plan)
            case nodes.Project(input=below, variables=variables):
                return self._project(self.relation(below), variables)
            case nodes.Distinct(input=below):
                return self._distinct(self.relation(below))
            case nodes.Order():
                return self._order(plan)
            case nodes.Slice():
                return self._slice(plan)
        raise TypeError(f"no SQL for {type(plan).__name__}")

    def _columns(self, relation: Relation, alias: str = "") -> Columns:
        dot = f"{alias}." if alias else ""
        return Columns(lambda v: f"{dot}{self.name(v)}" if v in relation.variables else None, relation.typed, relation.booleans,
                       f"{dot}tick" if "tick" in relation.keys else None, relation.variables)

    def _for(self, expression: Expression, relation: Relation) -> Relation:
        return self._timed(relation) if is_volatile(expression) else relation

    def _timed(self, relation: Relation) -> Relation:
        """Give a static relation every evaluation time."""
        if "tick" in relation.keys:
            return relation
        listed = ", ".join(f"a.{c}" for c in columns(relation, self.name) if c != "1 AS u")
        name = self._add(f"SELECT t.tick{', ' + listed if listed else ''} FROM {relation.name} a CROSS JOIN ticks t")
        spine = "ticks"
        if relation.keys:
            spine = self._add(f"SELECT t.tick, a.* FROM {relation.spine} a CROSS JOIN ticks t")
        return replace(relation, name=name, keys=("tick", *relation.keys), spine=spine)

    # -- leaves

    def _source(self, source: Source) -> tuple[str, tuple[str, ...], bool]:
        """Name of a source's relation, its keys, and whether one triple may stand in it twice."""
        self._sources.setdefault(source)
        return source_name(source), (() if isinstance(source, nodes.StaticSource) else ("tick",)), isinstance(source, nodes.WindowSource)

    def _scan(self, scan: nodes.Scan) -> Relation:
        source, keys, repeats = self._source(scan.source)
        where: list[str] = []
        places: dict[Variable, str] = {}
        for column, term in (*zip("spo", scan.terms), ("g", scan.graph)):
            self._place(column, term, places, where)
        typed = frozenset(v for v, column in places.items() if column == "o" and v in self.typed)
        select = [*keys]
        for variable, column in places.items():
            select.append(f"{column} AS {self.name(variable)}")
            if variable in typed:
                select += [f"{c} AS {self.name(variable)}{suffix}" for c, suffix in zip(TYPED_COLUMNS, COMPANIONS)]
        distinct = "DISTINCT " if repeats or any(isinstance(t, OneOf) for t in scan.terms) else ""
        text = f"SELECT {distinct}{', '.join(select) or '1 AS u'} FROM {source}"
        name = self._add(text + (f" WHERE {' AND '.join(where)}" if where else ""))
        bound = tuple(places)
        return Relation(name, keys, "ticks" if keys else "", bound, frozenset(bound), typed)

    def _place(self, column: str, term: PatternTerm | None, places: dict[Variable, str], where: list[str]) -> None:
        match term:
            case Constant(token=token):
                where.append(f"{column} = {self.dialect.quote(token)}")
            case OneOf(tokens=tokens):
                where.append(f"{column} IN ({', '.join(map(self.dialect.quote, tokens))})")
            case Variable() if term in places:
                where.append(f"{column} = {places[term]}")
            case Variable():
                places[term] = column
                if column == "g":
                    where.append("g IS NOT NULL")

    def _nodes(self, plan: nodes.Nodes) -> Relation:
        source, keys, _ = self._source(plan.source)
        graph, where = [], ""
        if isinstance(plan.graph, Variable):
            graph, where = [f"g AS {self.name(plan.graph)}"], " WHERE g IS NOT NULL"
        elif isinstance(plan.graph, Constant):
            where = f" WHERE g = {self.dialect.quote(plan.graph.token)}"
        sides = [f"SELECT {', '.join([*keys, f'{c} AS {self.name(plan.variable)}', *graph])} FROM {source}{where}" for c in "so"]
        bound = (plan.variable, *((plan.graph,) if isinstance(plan.graph, Variable) else ()))
        return Relation(self._add(" UNION ".join(sides)), keys, "ticks" if keys else "", bound, frozenset(bound))

    def _star(self, star: nodes.Star) -> Relation:
        """Scans with one subject: in Spark one group-by on the subject, each object a set that is exploded; in DuckDB plain joins."""
        groupable = all(isinstance(s.predicate, Constant) and not isinstance(s.object, OneOf) and s.graph is None
                        and s.object != s.subject for s in star.scans)
        objects = [s.object for s in star.scans if isinstance(s.object, Variable)]
        if not self.dialect.stars or not groupable or len(set(objects)) < len(objects) \
                or not isinstance(star.scans[0].subject, Variable):
            plan: Plan = star.scans[0]
            for scan in star.scans[1:]:
                plan = nodes.Join(plan, scan)
            self._done[id(star)] = (star, self.relation(plan))
            return self.relation(plan)
        return self._grouped_star(star, star.scans[0].subject)

    def _grouped_star(self, star: nodes.Star, subject: Variable) -> Relation:
        source, keys, _ = self._source(star.scans[0].source)
        quote, grouped, having, explode = self.dialect.quote, [], [], []
        typed = frozenset(s.object for s in star.scans if isinstance(s.object, Variable) and s.object in self.typed)
        select = [*keys, f"{self.name(subject)}"]
        for number, scan in enumerate(star.scans):
            assert isinstance(scan.predicate, Constant)
            test = f"p = {quote(scan.predicate.token)}"
            if isinstance(scan.object, Constant):
                having.append(f"bool_or({test} AND o = {quote(scan.object.token)})")
                continue
            assert isinstance(scan.object, Variable)
            grouped.append(f"collect_set(CASE WHEN {test} THEN named_struct('o', o, 'kind', kind, 'number', number, 'micros', micros) END) AS l{number}")
            having.append(f"bool_or({test})")
            explode.append(f"LATERAL VIEW explode(l{number}) AS e{number}")
            column = self.name(scan.object)
            select.append(f"e{number}.o AS {column}")
            if scan.object in typed:
                select += [f"e{number}.{c} AS {column}{suffix}" for c, suffix in zip(TYPED_COLUMNS, COMPANIONS)]
        predicates = ", ".join(sorted({quote(s.predicate.token) for s in star.scans if isinstance(s.predicate, Constant)}))
        by = ", ".join([*keys, "s"])
        inner = (f"SELECT {', '.join([*keys, f's AS {self.name(subject)}', *grouped])} FROM {source} WHERE p IN ({predicates}) "
                 f"GROUP BY {by} HAVING {' AND '.join(having)}")
        bound = (subject, *(s.object for s in star.scans if isinstance(s.object, Variable)))
        name = self._add(f"SELECT {', '.join(select)} FROM ({inner}) AS stars {' '.join(explode)}")
        return Relation(name, keys, "ticks" if keys else "", bound, frozenset(bound), typed)

    def _values(self, plan: nodes.Values) -> Relation:
        names = [self.name(v) for v in plan.variables]
        cells = [[f"CAST({self.dialect.quote(c.token) if c else 'NULL'} AS STRING) AS {n}" for c, n in zip(row, names)] for row in plan.rows]
        empty = ", ".join(f"CAST(NULL AS STRING) AS {n}" for n in names) or "1 AS u"
        text = " UNION ALL ".join(f"SELECT {', '.join(row) or '1 AS u'}" for row in cells) or f"SELECT {empty} WHERE FALSE"
        certain = frozenset(v for i, v in enumerate(plan.variables) if all(row[i] is not None for row in plan.rows))
        return Relation(self._add(text), (), "", plan.variables, certain)

    # -- joins

    def _merged(self, left: Relation, right: Relation) -> tuple[tuple[str, ...], str]:
        keys = (*left.keys, *(k for k in right.keys if k not in left.keys))
        if set(keys) == set(left.keys):
            return keys, left.spine
        if set(keys) == set(right.keys):
            return keys, right.spine
        a, b = (left, right) if "tick" in left.keys else (right, left)
        return keys, self._add(f"SELECT b.*, a.tick FROM ticks a CROSS JOIN {b.spine} b")

    def _shared(self, left: Relation, right: Relation) -> list[Variable]:
        return [v for v in left.variables if v in right.variables]

    def _join(self, plan: nodes.Join) -> Relation:
        left, right = self.relation(plan.left), self.relation(plan.right)
        conditions = key_condition(left.keys, right.keys) + compatible(left, right, self.name, self._shared(left, right))
        select, typed = joined_columns(left, right, self.name)
        name = self._add(f"SELECT {', '.join(select)} FROM {left.name} a JOIN {right.name} b ON {' AND '.join(conditions) or 'TRUE'}")
        keys, spine = self._merged(left, right)
        variables = (*left.variables, *(v for v in right.variables if v not in left.variables))
        return Relation(name, _ordered_keys(keys, left, right), spine, variables, left.certain | right.certain, typed,
                        left.booleans | right.booleans)

    def _left_join(self, plan: nodes.LeftJoin) -> Relation:
        left, right = self.relation(plan.left), self.relation(plan.right)
        if not set(right.keys) <= set(left.keys):
            left = self._timed(left)
        conditions = key_condition(left.keys, right.keys) + compatible(left, right, self.name, self._shared(left, right))
        select, typed = joined_columns(left, right, self.name)
        variables = (*left.variables, *(v for v in right.variables if v not in left.variables))
        result = Relation("", left.keys, left.spine, variables, left.certain, typed, left.booleans)
        if plan.condition is None:
            text = f"SELECT {', '.join(select)} FROM {left.name} a LEFT JOIN {right.name} b ON {' AND '.join(conditions) or 'TRUE'}"
            return replace(result, name=self._add(text))
        return self._conditional_left_join(left, right, result, conditions, select, plan.condition)

    def _conditional_left_join(self, left: Relation, right: Relation, result: Relation, conditions: list[str], select: list[str],
                               condition: Expression) -> Relation:
        """OPTIONAL with a filter: the joined rows that pass it, and the left rows that have none (LeftJoin, section 18.5)."""
        if is_volatile(condition):
            left, result = self._timed(left), self._timed(result) if "tick" not in result.keys else result
        joined = self._add(f"SELECT {', '.join(select)} FROM {left.name} a JOIN {right.name} b ON {' AND '.join(conditions) or 'TRUE'}")
        seen = replace(result, name=joined, certain=left.certain | right.certain)
        matched = self._add(f"SELECT * FROM {joined} WHERE {self.lowering.condition(condition, self._columns(seen))}")
        same = key_condition(left.keys, left.keys) + [f"a.{self.name(v)} IS NOT DISTINCT FROM b.{self.name(v)}" for v in left.variables]
        padded = [f"a.{key}" for key in result.keys]
        for variable in result.variables:
            column = self.name(variable)
            padded.append(f"a.{column}" if variable in left.variables else f"CAST(NULL AS STRING) AS {column}")
            if variable in result.typed:
                types = ("TINYINT", "DOUBLE", "BIGINT")
                padded += [f"a.{column}{s}" if variable in left.typed else f"CAST(NULL AS {t}) AS {column}{s}" for s, t in zip(COMPANIONS, types)]
        listed = ", ".join(columns(result, self.name))
        return replace(result, name=self._add(
            f"SELECT {listed} FROM {matched} UNION ALL SELECT {', '.join(padded) or '1 AS u'} FROM {left.name} a "
            f"WHERE NOT EXISTS (SELECT 1 FROM {matched} b WHERE {' AND '.join(same) or 'TRUE'})"))

    def _minus(self, plan: nodes.Minus) -> Relation:
        left, right = self.relation(plan.left), self.relation(plan.right)
        shared = [v for v in self._shared(left, right) if v not in plan.ignored]
        if not shared:
            return left
        if not set(right.keys) <= set(left.keys):
            left = self._timed(left)
        overlap = " OR ".join(f"a.{self.name(v)} = b.{self.name(v)}" for v in shared)
        sure = any(v in left.certain and v in right.certain for v in shared)
        conditions = key_condition(left.keys, right.keys) + compatible(left, right, self.name, shared) + ([] if sure else [f"({overlap})"])
        return replace(left, name=self._add(
            f"SELECT * FROM {left.name} a WHERE NOT EXISTS (SELECT 1 FROM {right.name} b WHERE {' AND '.join(conditions)})"))

    def _union(self, plan: nodes.Union) -> Relation:
        left, right = self.relation(plan.left), self.relation(plan.right)
        if set(left.keys) != set(right.keys):
            left, right = self._timed(left), self._timed(right)
        variables = (*left.variables, *(v for v in right.variables if v not in left.variables))
        typed = frozenset(v for v in variables if all(v in r.typed for r in (left, right) if v in r.variables))
        result = Relation("", left.keys, left.spine, variables, left.certain & right.certain, typed, left.booleans | right.booleans)
        sides = [f"SELECT {', '.join(self._padded(side, result))} FROM {side.name}" for side in (left, right)]
        return replace(result, name=self._add(" UNION ALL ".join(sides)))

    def _padded(self, side: Relation, result: Relation) -> list[str]:
        found = [*result.keys]
        for variable in result.variables:
            column = self.name(variable)
            there = variable in side.variables
            found.append(column if there else f"CAST(NULL AS STRING) AS {column}")
            if variable in result.typed:
                types = ("TINYINT", "DOUBLE", "BIGINT")
                found += [column + s if there else f"CAST(NULL AS {t}) AS {column}{s}" for s, t in zip(COMPANIONS, types)]
        return found or ["1 AS u"]

    # -- EXISTS

    def _seed(self, plan: nodes.Seed) -> Relation:
        """The distinct outer values, twice: as identity of the outer row (keys) and as the variables substituted inside."""
        outer = self.relation(plan.outer)
        mark = len(self._texts)
        identity = [f"d{mark}_{i}" for i in range(len(plan.variables))]
        select = [*outer.keys]
        for key, variable in zip(identity, plan.variables):
            select += [f"{self.name(variable)} AS {key}", self.name(variable)]
        name = self._add(f"SELECT DISTINCT {', '.join(select) or '1 AS u'} FROM {outer.name}")
        return Relation(name, (*outer.keys, *identity), name, plan.variables, outer.certain & frozenset(plan.variables))

    def _mark(self, plan: nodes.Mark) -> Relation:
        outer, inner = self.relation(plan.input), self.relation(plan.inner)
        if "tick" in inner.keys and "tick" not in outer.keys:
            outer = self._timed(outer)
        identity = [key for key in inner.keys if key not in outer.keys and key != "tick"]
        conditions = key_condition(outer.keys, inner.keys)
        conditions += [f"a.{self.name(v)} IS NOT DISTINCT FROM b.{key}" for v, key in zip(plan.shared, identity)]
        truth = f"EXISTS (SELECT 1 FROM {inner.name} b WHERE {' AND '.join(conditions) or 'TRUE'})"
        name = self._add(f"SELECT a.*, {truth} AS {self.name(plan.variable)} FROM {outer.name} a")
        return replace(outer, name=name, variables=(*outer.variables, plan.variable), booleans=outer.booleans | {plan.variable})

    # -- one input

    def _extend(self, plan: nodes.Extend) -> Relation:
        relation = self._for(plan.expression, self.relation(plan.input))
        value = self.lowering.value(plan.expression, self._columns(relation))
        name = self._add(f"SELECT *, {value} AS {self.name(plan.variable)} FROM {relation.name}")
        certain = isinstance(plan.expression, Constant) or plan.expression in relation.certain
        return replace(relation, name=name, variables=(*relation.variables, plan.variable),
                       certain=relation.certain | ({plan.variable} if certain else set()))

    def _aggregate(self, plan: nodes.Aggregate) -> Relation:
        relation = self.relation(plan.input)
        keys = [self.name(v) for v in plan.keys if v in relation.variables]
        missing = [v for v in plan.keys if v not in relation.variables]
        calls = [f"{self._aggregated(call, relation)} AS {self.name(v)}" for v, call in plan.aggregates]
        calls += [f"CAST(NULL AS STRING) AS {self.name(v)}" for v in missing]
        variables = (*plan.keys, *(v for v, _ in plan.aggregates))
        counted = frozenset(v for v, call in plan.aggregates if call.function == "COUNT")
        result = Relation("", relation.keys, relation.spine, variables, counted | (frozenset(plan.keys) & relation.certain))
        rows = f"(SELECT *, 1 AS here FROM {relation.name})"
        if not plan.implicit:
            by = [*relation.keys, *keys]
            grouping = f" GROUP BY {', '.join(by)}" if by else " HAVING count(here) > 0"
            return replace(result, name=self._add(f"SELECT {', '.join([*by, *calls]) or '1 AS u'} FROM {rows} AS r{grouping}"))
        if not relation.keys:
            return replace(result, name=self._add(f"SELECT {', '.join(calls)} FROM {rows} AS r"))
        held = [f"a.{k}" for k in relation.keys]
        same = " AND ".join(key_condition(relation.keys, relation.keys))
        listed = ", ".join(relation.keys)
        return replace(result, name=self._add(
            f"SELECT {', '.join([*held, *calls])} FROM (SELECT DISTINCT {listed} FROM {relation.spine}) a LEFT JOIN {rows} b "
            f"ON {same} GROUP BY {', '.join(held)}"))

    def _aggregated(self, call: AggregateCall, relation: Relation) -> str:
        argument = call.expression
        column = None
        if argument is not None:
            assert isinstance(argument, Variable)
            column = self.name(argument) if argument in relation.variables else "CAST(NULL AS STRING)"
        if call.function == "COUNT":
            if column is None and call.distinct:
                cells = ", ".join(f"coalesce({self.name(v)}, '')" for v in relation.variables if v.visible and v not in relation.booleans)
                column = f"CASE WHEN here IS NOT NULL THEN concat_ws(chr(1), {cells or chr(39) * 2}) END"
            return f"concat('\"', CAST(count({'DISTINCT ' if call.distinct else ''}{column or 'here'}) AS STRING), '{INTEGER_SUFFIX}')"
        code = encode((call.function, call.distinct, call.separator))
        return self.dialect.aggregate(code, self.dialect.collect(str(column), "here"))

    def _project(self, relation: Relation, variables: tuple[Variable, ...]) -> Relation:
        kept = replace(relation, variables=variables, certain=relation.certain & frozenset(variables),
                       typed=relation.typed & frozenset(variables), booleans=relation.booleans & frozenset(variables))
        listed = self._padded(replace(relation, keys=kept.keys), kept) + (["ord"] if relation.ordered else [])
        return replace(kept, name=self._add(f"SELECT {', '.join(listed)} FROM {relation.name}"))

    def _distinct(self, relation: Relation) -> Relation:
        listed = columns(relation, self.name, order=False)
        if not relation.ordered:
            return replace(relation, name=self._add(f"SELECT DISTINCT {', '.join(listed)} FROM {relation.name}"))
        by = f" GROUP BY {', '.join(listed)}" if listed != ["1 AS u"] else ""
        return replace(relation, name=self._add(f"SELECT {', '.join(listed)}, min(ord) AS ord FROM {relation.name}{by}"))

    def _order(self, plan: nodes.Order) -> Relation:
        relation = self.relation(plan.input)
        keys, order = [], []
        for number, (condition, descending) in enumerate(plan.conditions):
            assert isinstance(condition, Variable)
            column = self.name(condition) if condition in relation.variables else "CAST(NULL AS STRING)"
            keys.append(f"{self.dialect.order_key(column)} AS k{number}")
            order.append(f"k{number}{' DESC' if descending else ''}")
        partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
        listed = ", ".join(columns(relation, self.name, order=False))
        keyed = self._add(f"SELECT {listed}, {', '.join(keys)} FROM {relation.name}")
        ranked = self._add(f"SELECT *, dense_rank() OVER ({partition}ORDER BY {', '.join(order)}) AS ord FROM {keyed}")
        return replace(relation, name=ranked, ordered=True)

    def _slice(self, plan: nodes.Slice) -> Relation:
        """LIMIT and OFFSET per evaluation time; ties, and rows without ORDER BY, in canonical row order."""
        relation = self.relation(plan.input)
        canonical = [f"{self.name(v)} NULLS FIRST" for v in sorted(relation.variables) if v not in relation.booleans]
        order = (["ord"] if relation.ordered else []) + canonical or ["1"]
        partition = f"PARTITION BY {', '.join(relation.keys)} " if relation.keys else ""
        listed = ", ".join(columns(relation, self.name, order=False))
        ranked = f"SELECT {listed}, row_number() OVER ({partition}ORDER BY {', '.join(order)}) AS ord FROM {relation.name}"
        limit = f" AND ord <= {plan.offset + plan.limit}" if plan.limit is not None else ""
        return replace(relation, ordered=True, name=self._add(f"SELECT * FROM ({ranked}) AS ranked WHERE ord > {plan.offset}{limit}"))


def _ordered_keys(keys: tuple[str, ...], left: Relation, right: Relation) -> tuple[str, ...]:
    """Keys in the order of a join's select list."""
    return (*left.keys, *(k for k in right.keys if k not in left.keys)) if keys else ()


def emit(plan: Plan, variables: tuple[Variable, ...], dialect: Dialect, identity: str, label_offset: int,
         typed: frozenset[Variable]) -> PlanText:
    """SQL of a SELECT or ASK plan."""
    return Emitter(dialect, Lowering(dialect, identity, label_offset), typed).text(plan, variables)


__all__ = ["Emitter", "PlanText", "emit", "source_texts", "variables_of"]
