"""Rule programs with a time of their own over recorded facts, in this process: compiled, taken on in steps, and what ended and what is held
at the end gathered as facts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from engine.grouping import by_key
from engine.ir.programs import fits
from engine.ir.rules import TRIPLE, Atom, Fact, RuleSet, atoms
from engine.ir.terms import RDF_TYPE, Constant
from engine.plan import derivations, intervals
from engine.plan.analyses import goes_on
from engine.plan.explain import explain_program
from engine.plan.memory import describe, memory
from engine.records import Triple
from engine.rewrite.temporal import normal_form
from engine.sql.steps import statements_of
from engine.timeline import ALWAYS, MAX, MIN, Interval, coalesce, granule, instant
from engine.worker.database import connect
from engine.worker.guard import given_memory, out_of_memory
from engine.worker.program import ALWAYS_RELATION, ProgramState, by_relation
from engine.worker.tables import joined, table_of, tables
from engine.worker.timed_task import between, end_of_granule, step_size, steps

Held = dict[Atom, list[Interval]]
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Derived:
    """What holds of the predicates that rules derive, input about them included: coalesced, within the points `of`. `cut`: rules would go
    on deriving behind the end."""

    held: Held
    of: Interval
    cut: bool

    @property
    def facts(self) -> list[Fact]:
        return [Fact(atom, when) for atom, held in self.held.items() for when in held]


def planned(program: RuleSet) -> intervals.Program:
    """The plan of a program. Raises DiagnosticError where there is none."""
    made = normal_form(program)
    return derivations.build(program, made.rules, made.checks)


def explain(program: RuleSet) -> str:
    return explain_program(planned(program)) + describe(memory(normal_form(program).rules, program.granularity_ms))


def heads(program: RuleSet) -> dict[str, list[Atom]]:
    """The atoms of the rules' heads by what a person calls their predicates: ``P``, ``<iri>`` for a property or class, ``triple``."""
    found = by_key((_called(atom), atom) for rule in program.rules for atom in atoms(rule.head))
    return dict(sorted(found.items()))


def as_given(facts: Iterable[Fact], streamed: Sequence[tuple[Triple, int]] = (), static: Sequence[Triple] = ()) -> Tables:
    """Facts, triples of a stream with their time stamps in ms, and triples that always hold, by relation."""
    found = tables(facts)
    rows = [*((*triple, instant(at), instant(at)) for triple, at in streamed), *((*triple, ALWAYS.lo, ALWAYS.hi) for triple in static)]
    return joined([found, {f"{TRIPLE}/3": table_of(rows, 3)} if rows else {}])


def run(program: RuleSet, given: Mapping[str, pa.Table], until_ms: int | None = None, names: Collection[str] | None = None,
        size: int | None = None) -> Derived:
    """What a program derives from its own facts and the `given` ones (by relation, as engine/worker/tables.py makes them), of the
    predicates `names` or all: up to the instant `until_ms`, or its granule; without it on a timeline of granules up to the last granule of
    a fact, on dense time all that follows, or where that goes on for ever what holds up to the last end of a fact. A step takes about
    `size` facts. Raises DiagnosticError, LimitExceeded, growth.Unending, ValueError."""
    plan, facts = planned(program), joined([given, tables(program.facts)])
    if program.granularity_ms:
        _check_ends(facts)
    relations = derivations.Relations(program.rules)
    wanted: dict[str, list[Atom]] = defaultdict(list)
    for name, listed in heads(program).items():
        for atom in listed if names is None or name in names else ():
            wanted[relations.of(atom)[0]].append(atom)
    last, cut = _last(facts), until_ms is None and not plan.granule and goes_on(plan, _lasting(plan, facts))
    end = instant(until_ms) if until_ms is not None else last if plan.granule or cut else MAX
    end = end_of_granule(end, plan.granule)
    try:
        found, of = _taken_on(plan, facts, list(wanted), end, size)
    except Exception as failure:
        raise out_of_memory(failure) or failure
    held: Held = {}
    for name, table in found.items():
        held |= {Atom(predicate, tuple(map(Constant, terms))): coalesce(when) for (predicate, terms), when in _rows(name, table).items()
                 if any(fits(terms, head) for head in wanted[name])}
    return Derived(held, of, cut)


def _taken_on(plan: intervals.Program, facts: Tables, shown: list[str], end: int, size: int | None) -> tuple[Tables, Interval]:
    """The rows that the relations `shown` had and have, not coalesced, when the program is taken on to a point; and the points they are
    within."""
    ordered = {name: table.take(pc.sort_indices(table["lo"])) for name, table in facts.items() if table.num_rows}
    late = {late: name for name, late in plan.late}
    found: dict[str, list[pa.Table]] = {name: [] for name in shown}

    def gather(name: str, table: pa.Table) -> None:
        found[late.get(name, name)].append(_placed(table, plan.granule) if name in late else table)

    with connect(given_memory()) as connection:
        asked = [*shown, *(made for made, name in late.items() if name in shown)]
        state = ProgramState(connection, statements_of(plan), asked)
        past = MIN - 1
        for until in steps(facts, size or step_size(facts, plan), end, plan.granule):
            for name, table in state.advance(between(ordered, past, until), until).ended.items():
                gather(name, table)
            past = until
        for name in asked:
            gather(name, state.rows(name))
    of = Interval(min(MIN if state.mark.start is None else state.mark.start, end), end)
    return {name: _clipped(pa.concat_tables(listed), of) for name, listed in found.items() if listed}, of


def _called(atom: Atom) -> str:
    if atom.predicate != TRIPLE or not isinstance(link := atom.terms[1], Constant):
        return atom.predicate
    class_ = atom.terms[2]
    return class_.token if link.token == RDF_TYPE and isinstance(class_, Constant) else link.token


def _rows(relation: str, table: pa.Table) -> dict[tuple[str, tuple[str, ...]], list[Interval]]:
    """When atoms hold, by predicate and tokens."""
    predicate, *fixed = relation.rpartition("/")[0].split(" ") if relation.startswith(f"{TRIPLE} ") else [relation.rpartition("/")[0]]
    cells = [table[name].to_pylist() for name in table.column_names[:-2]]
    found: dict[tuple[str, tuple[str, ...]], list[Interval]] = defaultdict(list)
    for *tokens, lo, hi in zip(*cells, table["lo"].to_pylist(), table["hi"].to_pylist()):
        found[predicate, (*tokens[:1], *fixed, *tokens[1:])].append(Interval(lo, hi))
    return found


def _last(facts: Tables) -> int:
    """The last point at which a fact begins or ends."""
    found = [int(ends.max()) for table in facts.values() for name in ("lo", "hi")
             if len(ends := table[name].to_numpy()) and len(ends := ends[(ends > MIN) & (ends < MAX)])]
    return max(found, default=0)


def _lasting(plan: intervals.Program, facts: Tables) -> set[str]:
    """The relations with facts that hold for ever."""
    given = [(name, table.filter(pc.equal(table["hi"], MAX))) for name, table in facts.items()]
    names = {relation.name: relation for relation in plan.relations}
    return {ALWAYS_RELATION, *by_relation(names, [(name, table) for name, table in given if table.num_rows])}


def _placed(table: pa.Table, length: int) -> pa.Table:
    """Rows of atoms that became known late, with their instants, as rows of the granules that they are about."""
    *cells, instants = [table[name].to_pylist() for name in table.column_names[:-2]]
    held = [granule(int(token.split('"')[1]), length // 2) for token in instants]
    return table_of([(*row, when.lo, when.hi) for *row, when in zip(*cells, held)], len(cells))


def _clipped(table: pa.Table, to: Interval) -> pa.Table:
    """What of the rows lies inside an interval."""
    lo, hi = pc.max_element_wise(table["lo"], to.lo), pc.min_element_wise(table["hi"], to.hi)
    names = table.column_names[:-2]
    made = pa.table({**{name: table[name] for name in names}, "lo": lo, "hi": hi})
    return made.filter(pc.less_equal(made["lo"], made["hi"]))


def _check_ends(facts: Tables) -> None:
    for name, table in facts.items():
        if pc.any(pc.xor(pc.equal(table["lo"], ALWAYS.lo), pc.equal(table["hi"], ALWAYS.hi))).as_py():
            raise ValueError(f"A fact of {name.rpartition('/')[0]} has a begin or an end only; on a timeline of granules one holds always, "
                             "or has both.")
