"""Rule programs with a time of their own over recorded facts, in this process: compiled, taken on in steps, what is derived as facts."""

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
from engine.plan.explain import explain_program
from engine.plan.memory import describe, memory
from engine.records import Triple
from engine.rewrite.temporal import normal_form
from engine.timeline import ALWAYS, Interval, coalesce, instant
from engine.worker import recording
from engine.worker.guard import out_of_memory
from engine.worker.tables import joined, table_of, tables

Held = dict[Atom, list[Interval]]


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


def as_given(facts: Iterable[Fact], streamed: Sequence[tuple[Triple, int]] = (), static: Sequence[Triple] = ()) -> dict[str, pa.Table]:
    """Facts, triples of a stream with their time stamps in ms, and triples that always hold, by relation."""
    found = tables(facts)
    rows = [*((*triple, instant(at), instant(at)) for triple, at in streamed), *((*triple, ALWAYS.lo, ALWAYS.hi) for triple in static)]
    return joined([found, {f"{TRIPLE}/3": table_of(rows, 3)} if rows else {}])


def run(program: RuleSet, given: Mapping[str, pa.Table], until_ms: int | None = None, names: Collection[str] | None = None,
        size: int | None = None) -> Derived:
    """What a program derives from its own facts and the `given` ones (by relation, as engine/worker/tables.py makes them), of the
    predicates `names` or all; see recording.run. Raises DiagnosticError, LimitExceeded, growth.Unending, ValueError."""
    plan, facts = planned(program), joined([given, tables(program.facts)])
    if program.granularity_ms:
        _check_ends(facts)
    relations = derivations.Relations(program.rules)
    wanted: dict[str, list[Atom]] = defaultdict(list)
    for name, listed in heads(program).items():
        for atom in listed if names is None or name in names else ():
            wanted[relations.of(atom)[0]].append(atom)
    try:
        found = recording.run(plan, facts, list(wanted), until_ms, size)
    except Exception as failure:
        raise out_of_memory(failure) or failure
    held: Held = {}
    for name, table in found.rows.items():
        held |= {Atom(predicate, tuple(map(Constant, terms))): coalesce(when) for (predicate, terms), when in _rows(name, table).items()
                 if any(fits(terms, head) for head in wanted[name])}
    return Derived(held, found.of, found.cut)


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


def _check_ends(facts: Mapping[str, pa.Table]) -> None:
    for name, table in facts.items():
        if pc.any(pc.xor(pc.equal(table["lo"], ALWAYS.lo), pc.equal(table["hi"], ALWAYS.hi))).as_py():
            raise ValueError(f"A fact of {name.rpartition('/')[0]} has a begin or an end only; on a timeline of granules one holds always, "
                             "or has both.")
