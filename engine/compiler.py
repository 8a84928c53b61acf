"""The one list of stages that a statement goes through, from its parsed form to the text that Spark runs.

``parsed -> validated -> rewritten -> logical -> spark``; the same words are the levels of EXPLAIN, the tabs of the console and the
folders of tests/golden.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import STAGES, Compiled, Equality
from engine.execution.content import merge_estimates, table_estimate
from engine.ir.printer import Pass
from engine.ir.rules import RuleSet, atoms
from engine.ir.stages import divide
from engine.ir.statement import BACKGROUND, REASONING, Program, Statement, TimedProgram
from engine.ir.terms import SAME_AS
from engine.ir.windows import with_rule_windows
from engine.plan import derivations
from engine.plan.build import Builder
from engine.plan.dataset import Dataset, dataset, entailed, goal_plan, named, program_plan
from engine.plan.nodes import ClosedSource, MergedSource, Plan, StaticSource, TimedSource, closures, sources, with_closures
from engine.plan.order import Estimate
from engine.plan.timed import StagedPlan, staged_plan, timed_plan
from engine.records import Triple
from engine.rewrite.alternatives import NotUnfolded
from engine.rewrite.equality import derives_equality, obstacle
from engine.rewrite.owl2rl import BUILT_IN as BUILT_IN_RULES, RULES_OF
from engine.rewrite.programs import Programs, schema_words, united
from engine.rewrite.relevance import ANYTHING, Goal, goals_of
from engine.rewrite.temporal import normal_form
from engine.rewrite.timed import stage_program, timed_rules
from engine.rewrite.unfold import unfold
from engine.rewrite.unique_names import under_unique_names, while_unequal
from engine.rewrite.validate import Catalog, validate


def compile_statement(statement: Statement, catalog: Catalog, identity: str = "", until: str = "spark", *,
                      without: frozenset[str] = frozenset()) -> Compiled:
    """Take a parsed statement through STAGES; DiagnosticError carries everything that is wrong with it.

    `identity` seeds RAND, UUID and blank nodes: the query's name. `until` "logical" leaves the texts for Spark to first use.
    Passes `without` are left out, of those in engine.rewrite.PASSES: "partial" where schema may come with the streams.
    """
    statement = with_rule_windows(statement, catalog.rules)
    identity = identity or hashlib.sha256(statement.text.encode()).hexdigest()[:12]
    validated = validate(statement, catalog)
    if isinstance(statement.query, TimedProgram):
        return _compile_timed(validated, statement.query, identity)
    if isinstance(statement.query, Program):
        return _compile_program(validated, catalog, identity, until, without)
    estimate = static_estimate(validated, catalog)
    chain = _staged(validated, catalog)
    timed = None if chain is None else TimedSource(f"h_{hashlib.sha256(f'{chain.name} {identity}'.encode()).hexdigest()[:16]}")
    plain = dataset(validated, timed)
    rewritten, data, closed, passes = (_rewritten(validated, catalog, without, timed) if statement.rules else (validated, plain, plain, ()))

    def build(live: Estimate) -> Plan:
        return Builder(data, live).build(rewritten.query)

    generalise = partial(compile_statement, statement, catalog, identity, until, without=without | {"partial"})
    words = _schema_words(validated, catalog) if statement.rules and "partial" not in without else frozenset[str]()
    plan = build(estimate)
    closed_plan = plan if closed is data else Builder(closed, estimate).build(validated.query)
    goal = goal_plan(validated, closed_plan, closed.default, _windows_of(validated))
    equality = _equality(plan, statement, catalog, without)
    if equality.obstacle is not None:
        passes = (*passes, Pass("equality", passes[-1].rules, f"owl:sameAs by {'its rules: ' if equality.obstacle else 'representatives'}"
                                                              f"{equality.obstacle}"))
    narrowing = _UniqueNames(validated, goals_of(validated.query), without)
    compiled = Compiled(validated, rewritten, plan, identity, estimate, build, generalise, words, goal, (*passes, *narrowing.passes(plan)),
                        staged=chain, derived=timed, equality=equality, narrow=narrowing, unequal=narrowing.while_unequal)
    if until == "spark":
        compiled.write()
    return compiled


def _equality(plan: Plan, statement: Statement, catalog: Catalog, without: frozenset[str]) -> Equality:
    """Whether the closures of a plan may be computed by representatives of equal terms, and what asks for that."""
    rules = [closed.rules for closed in closures(sources(plan))]
    found = [obstacle(one) for one in rules]
    if not rules or None in found:
        return Equality()
    graphs = {g.iri for g in (*statement.graphs, *statement.reasoning_graphs)}
    stated = sum(pc.sum(pc.equal(catalog.graphs[iri]["p"], SAME_AS)).as_py() or 0 for iri in graphs)
    why = "that is left out" if "equality" in without else next(filter(None, found), "")
    return Equality(why, stated, any(map(derives_equality, rules)))


class _UniqueNames:
    """Leaves closures of windows only the rules that matter while the names in some goals are unique."""

    def __init__(self, statement: Statement, goals: Sequence[Goal], without: frozenset[str]) -> None:
        self._windows, self._goals, self._is_left_out = _windows_of(statement), goals, "unique_names" in without
        self._found: dict[str, ClosedSource | None] = {}    # by name

    def __call__(self, plan: Plan) -> Plan | None:
        """The plan under fewer rules; None where all matter."""
        if all(self._narrowed(closed) is None for closed in closures(sources(plan))):
            return None
        return with_closures(plan, lambda closed: self._narrowed(closed) or closed)

    def while_unequal(self, closed: ClosedSource) -> ClosedSource | None:
        """A closure of windows under the rules that matter while no term is equal to another; None where all do."""
        rules = None if self._is_left_out or closed.is_static else while_unequal(closed.rules)
        return None if rules is None else named(replace(closed, rules=rules), self._windows)

    def passes(self, plan: Plan) -> list[Pass]:
        """The pass as EXPLAIN shows it, by the first closure that it changes."""
        found = [narrowed for closed in closures(sources(plan)) if (narrowed := self._narrowed(closed)) is not None]
        return [Pass("unique_names", closed.rules, "while no name is owl:sameAs another term") for closed in found[:1]]

    def _narrowed(self, closed: ClosedSource) -> ClosedSource | None:
        if self._is_left_out or closed.is_static:   # backgrounds are made once, and shared
            return None
        if closed.name not in self._found:
            own = [(atom.predicate, (None,) * len(atom.terms)) for rule in closed.rules if rule.role == "goal" for atom in atoms(rule.head)]
            rules = under_unique_names(closed.rules, [*self._goals, *own])
            self._found[closed.name] = None if rules is None else named(replace(closed, rules=rules), self._windows)
        return self._found[closed.name]


def _compile_program(statement: Statement, catalog: Catalog, identity: str, until: str, without: frozenset[str]) -> Compiled:
    """A rule program: what it asks is in its rules, and its plan is one closure."""
    program = statement.query
    assert isinstance(program, Program)
    graphs = {g.iri: triples(catalog.graphs[g.iri]) for g in statement.graphs}
    own = replace(program.rules, rules=tuple(
        replace(rule, name=rule.name or f"rule {number}") for number, rule in enumerate(program.rules.rules, 1)))
    behind = RULES_OF[program.profile].rules if program.profile else ()
    together = RuleSet("program", (*own.rules, *behind), own.facts)
    passes = Programs(together, graphs, goals_of(program), without if behind else without | {"partial"}).passes(graphs)
    plan = program_plan(statement, passes[-1].rules, _windows_of(statement))

    generalise = partial(compile_statement, statement, catalog, identity, until, without=without | {"partial"})
    words = frozenset[str]()
    if program.profile and "partial" not in without:
        words = schema_words(RULES_OF[program.profile], (triple for graph in graphs.values() for triple in graph))
    narrowing = _UniqueNames(statement, goals_of(program), without)
    compiled = Compiled(statement, statement, plan, identity, static_estimate(statement, catalog), lambda live: plan, generalise, words,
                        passes=(*passes, *narrowing.passes(plan)), narrow=narrowing, unequal=narrowing.while_unequal)
    if until == "spark":
        compiled.write()
    return compiled


def _compile_timed(statement: Statement, program: TimedProgram, identity: str) -> Compiled:
    """A program with a time of its own: its plan is one over interval relations."""
    made = normal_form(program.rules)
    plan = timed_plan(program.rules, derivations.build(program.rules, made.rules, made.checks), program.variables)
    passes = Pass(program.rules.name, program.rules.rules), Pass("normal form", made.rules)
    compiled = Compiled(statement, statement, plan, identity, Estimate(), lambda live: plan, lambda: compiled, passes=passes)
    return compiled


def _rewritten(statement: Statement, catalog: Catalog, without: frozenset[str],
               timed: TimedSource | None) -> tuple[Statement, Dataset, Dataset, tuple[Pass, ...]]:
    """The statement with its rules unfolded into it, if they can be, and what it looks at; its dataset closed under the rules, which is
    what it looks at otherwise; and what the passes made of the rules."""
    program = programs(statement, catalog, without)
    shown, reasoning = ([StaticSource(g.iri) for g in graphs if not g.named] for graphs in (statement.graphs, statement.reasoning_graphs))
    passes = program.passes(source.iri for source in (*shown, *reasoning))
    alone = statement.form == "DESCRIBE" or program.may_show(source.iri for source in reasoning)
    closed = entailed(dataset(statement, timed), tuple(reasoning), program.bound, _windows_of(statement), alone)
    try:
        if "unfold" in without:
            raise NotUnfolded("unfolding is left out")
        unfolded = unfold(statement, program, program.content)
    except NotUnfolded as reason:
        bound = program.bound(source.iri for source in (*shown, *reasoning))
        applied = Pass("unfold", passes[-1].rules, f"applied in closures: {reason}")
        return statement, closed, closed, (*passes, applied, Pass("magic", bound))
    data = dataset(unfolded, timed)
    data.graphs[BACKGROUND], data.graphs[REASONING] = MergedSource((*shown, *reasoning)), MergedSource(tuple(reasoning))
    return unfolded, data, closed, (*passes, Pass("unfold", (), "the patterns say what the rules said"))


def staged(sets: Sequence[RuleSet], graphs: Mapping[str, Sequence[Triple]], goals: Sequence[Goal]) -> StagedPlan | None:
    """The chain of programs for the rule sets with a time of their own, beside the triples of static graphs; None where no set has one.
    Raises DiagnosticError."""
    division = divide(sets)
    if not division.is_timed:
        return None
    static = [triple for iri in sorted(graphs) for triple in graphs[iri]]
    found = timed_rules(division, static, goals)
    made = [(stage, program, normal_form(program).rules) for stage in found.stages for program in [stage_program(stage)]]
    return staged_plan(made, found.facts, found.always, sorted(graphs), static)


def _schema_words(statement: Statement, catalog: Catalog) -> frozenset[str]:
    """The words by which a stream of the statement may bring schema."""
    graphs = (g.iri for g in (*statement.graphs, *statement.reasoning_graphs))
    return schema_words(united(_plain(statement, catalog)), (triple for iri in graphs for triple in triples(catalog.graphs[iri])))


def programs(statement: Statement, catalog: Catalog, without: frozenset[str] = frozenset()) -> Programs:
    """The rules under which the query's windows and graphs are closed."""
    rules = united(_plain(statement, catalog))
    graphs = {g.iri: triples(catalog.graphs[g.iri]) for g in (*statement.graphs, *statement.reasoning_graphs)}
    return Programs(rules, graphs, goals_of(statement.query), without)


def _plain(statement: Statement, catalog: Catalog) -> tuple[RuleSet, ...]:
    """The rules of a statement that are applied in closures: those without a time of their own."""
    return divide([catalog.rules[source.name] for source in statement.rules]).plain


def _staged(statement: Statement, catalog: Catalog) -> StagedPlan | None:
    """The chain of programs for the rule sets of a statement that have a time of their own."""
    sets = [catalog.rules[source.name] for source in statement.rules]
    if not divide(sets).is_timed:
        return None
    graphs = {g.iri: triples(catalog.graphs[g.iri]) for g in (*statement.graphs, *statement.reasoning_graphs) if not g.named}
    # where windows may be empty, whatever else the rules derive says when the query is evaluated
    return staged(sets, graphs, [ANYTHING] if statement.may_be_empty else goals_of(statement.query))


def _windows_of(statement: Statement) -> str:
    """What tells the windows of one statement from those of another: equal ones have equal closures, which are then made once."""
    return repr((statement.on_change, statement.start_at_ms, [(source.stream, source.window) for source in statement.windows]))


def triples(table: pa.Table) -> list[Triple]:
    """The triples of a static graph's facts."""
    return list(zip(*(table[c].to_pylist() for c in "spo")))


def static_estimate(statement: Statement, catalog: Catalog) -> Estimate:
    """Counts of the static graphs; streams count as they come (Compiled.adapt)."""
    return merge_estimates(table_estimate(catalog.graphs[g.iri]) for g in statement.graphs) if statement.graphs else Estimate()


__all__ = ["BUILT_IN_RULES", "STAGES", "Catalog", "Compiled", "compile_statement"]
