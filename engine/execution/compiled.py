"""A compiled statement: what every evaluation of a query shares, with the text of each stage for EXPLAIN."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal
from weakref import WeakValueDictionary

import pyarrow as pa

from engine.facts import pieces
from engine.functions.typed import ANY_KIND, Kinds, typed_columns
from engine.ir.expressions import Expression
from engine.ir.printer import Pass, show, show_passes
from engine.ir.rules import Role, Test
from engine.ir.statement import Construct, Describe, Statement, TimedProgram, TimeWindow
from engine.ir.terms import Variable
from engine.plan.build import TRIPLE
from engine.plan.exchange import divided
from engine.plan.explain import explain_plan, explain_staged, plan_tree
from engine.plan.graphs import growing
from engine.plan.kept import with_kept
from engine.plan.memory import describe, memory
from engine.plan.nodes import (AtomsSource, Begun, ClosedSource, Gather, Plan, Project, Sample, Scan, TimedSource, closures, own_leaves,
                               sources, walk, with_closures, with_names, with_representatives)
from engine.plan.order import Estimate
from engine.plan.shards import with_shards
from engine.plan.shape import Shape, shape_of
from engine.plan.timed import StagedPlan, TimedPlan
from engine.sql.calls import is_rowwise, is_volatile, typed_variables
from engine.sql.dialect import DIALECTS
from engine.sql.emit import Emitter, PlanText
from engine.sql.fixpoint import ClosureText, begun_text, closure_text
from engine.sql.kept import KeptText, KeptWriter
from engine.sql.lower import Lowering
from engine.sql.relation import Constants
from engine.sql.sources import tables
from engine.sql.steps import step_texts

STAGES = ("parsed", "validated", "rewritten", "logical", "spark")
LOCAL_ROWS = 4_000_000      # that windows show, where these are shipped with each evaluation: 130 bytes each, through the driver's JVM
RESIDENT_BYTES = 512        # of a worker's memory for each row, where they stay there: half of it is for what evaluates
MOST_TEXTS = 32     # of one statement: there are as many as sets of kinds that its streams have had
Form = Literal["plain", "sampled", "shared"]
ClosureKey = tuple[str, str, bool, int, Role | None, bool]
_WRITTEN: WeakValueDictionary[ClosureKey, ClosureText] = WeakValueDictionary()
"""The texts of closures that some statement has, and recent ones; the name of a closure follows from all that it is."""
_RECENT: deque[ClosureText] = deque(maxlen=MOST_TEXTS)


@dataclass(frozen=True, slots=True)
class Equality:
    """What is known of owl:sameAs before a statement is evaluated: why its rules are applied as they stand (empty where equal terms may
    stand for each other, None where there are no such rules), how many statements of it static graphs have, and whether rules may derive it
    from other statements than those of it, for other terms than literals."""

    obstacle: str | None = None
    statements: int = 0
    is_derived: bool = False

    def text(self) -> str:
        """The same as a comment before a plan."""
        if self.obstacle is None:
            return ""
        if self.obstacle:
            return f"-- owl:sameAs: by its rules: {self.obstacle}\n"
        derived = ", and rules may derive it" if self.is_derived else ""
        return (f"-- owl:sameAs: by representatives where there are statements of it: {self.statements} in static graphs{derived}; "
                "what is incremental keeps to its rules while these derive little\n")


def _as_it_is(plan: Plan | ClosedSource) -> None:
    """Of a plan or closure under all rules there is no other."""


@dataclass
class Compiled:
    """A statement through all stages; a value that every evaluation of the query shares until a graph of its changes."""

    statement: Statement
    rewritten: Statement
    plan: Plan
    identity: str
    estimate: Estimate
    build: Callable[[Estimate], Plan] = field(repr=False)
    generalise: Callable[[], Compiled] = field(repr=False)
    schema_words: frozenset[str] = field(default=frozenset(), repr=False)
    goal: Scan | None = field(default=None, repr=False)
    passes: tuple[Pass, ...] = field(default=(), repr=False)
    texts: dict[tuple[str, bool, Form, Kinds], PlanText] = field(default_factory=dict, repr=False)
    _kept: dict[tuple[str, bool], KeptText] = field(default_factory=dict, repr=False)
    _closed: dict[ClosureKey, ClosureText] = field(default_factory=dict, repr=False)
    _constants: dict[str, pa.Table] = field(default_factory=dict, repr=False)
    _apart: dict[str, Compiled] = field(default_factory=dict, repr=False)
    planned_rows: int = 0
    undecided: bool = False
    staged: StagedPlan | None = field(default=None, repr=False)
    derived: TimedSource | None = None
    equality: Equality = Equality()
    narrow: Callable[[Plan], Plan | None] = field(default=_as_it_is, repr=False)
    unequal: Callable[[ClosedSource], ClosedSource | None] = field(default=_as_it_is, repr=False)
    under_all_rules: Compiled | None = field(default=None, repr=False)

    def adapt(self, rows: int, live: Callable[[], Estimate]) -> None:
        """Order the joins anew, by `live` counts, once the streams hold four times (or a quarter of) what they did. Answers stay."""
        if self.planned_rows and self.planned_rows // 4 < rows < 4 * self.planned_rows or not rows:
            return
        self.planned_rows, self.estimate = rows, live()
        plan = self.build(self.estimate)
        if plan != self.plan:
            self.plan = plan
            self.texts.clear()
            self._apart.clear()
            for follows in ("sampled", "shared", "shape", "closures", "by_representatives", "in_shards"):
                self.__dict__.pop(follows, None)

    @cached_property
    def closures(self) -> list[ClosedSource]:
        """The closures of its plan, each after those that it stands on."""
        return closures(sources(self.plan))

    @cached_property
    def general(self) -> Compiled:
        """The statement compiled without knowing the schema: for streams that mention some of `schema_words`."""
        return self.generalise()

    def write(self) -> None:
        """Write what tasks need at each evaluation: for large schemas that takes seconds."""
        if self.under_unique_names is not None:
            self.under_unique_names.write()
        if self.by_representatives is not None and (self.equality.statements or self.equality.is_derived):
            self.by_representatives.write()
        else:
            for closure in self.text("local").closures:
                self.constants_of(closure)

    @property
    def keeps_closures(self) -> bool:
        """Whether some of its closures have intervals, so that they can be kept."""
        return any(closed.has_intervals for closed in self.closures)

    @property
    def timed(self) -> bool:
        """Whether its plan is a program with a time of its own."""
        return isinstance(self.plan, TimedPlan)

    @property
    def changing(self) -> float:
        """The share of its time windows that is new at an evaluation, of the one where it is most."""
        windows = [source.window for source in self.statement.streams if isinstance(source.window, TimeWindow)]
        return 0.0 if self.statement.on_change else max((min(1.0, w.step_ms / w.range_ms) for w in windows), default=1.0)

    @property
    def change_in_words(self) -> str:
        """How much changes from one evaluation to the next."""
        share = "little" if self.statement.on_change else f"{self.changing:.0%}"
        return f"{share} of its windows is new at an evaluation"

    @cached_property
    def with_goal(self) -> Compiled | None:
        """The query with its solutions derived in its closure, with intervals as its facts; None where that does not serve."""
        goal = self.goal
        whole = self.sampled.input if isinstance(self.sampled, Project) else self.sampled
        if goal is None or self.staged is not None or isinstance(whole, Sample):
            return None
        assert isinstance(goal.source, AtomsSource)
        asked = next(rule for rule in goal.source.parts[0].rules if rule.role == "goal")
        if any(map(is_volatile, (f.condition for f in asked.body if isinstance(f, Test)))):
            return None
        return self._over(goal, lambda live: goal)

    @cached_property
    def under_unique_names(self) -> Compiled | None:
        """The query under the rules that matter while no property or class that it names is equal to another term. Where one is, its
        closures report NOT_UNIQUE, and the query is to be evaluated `under_all_rules`. None where all rules matter."""
        plan, goal = self.narrow(self.plan), None if self.goal is None else self.narrow(self.goal)
        if plan is None:
            return None
        assert goal is None or isinstance(goal, Scan)

        def build(live: Estimate) -> Plan:
            built = self.build(live)
            return self.narrow(built) or built
        return self._over(plan, build, goal=goal, under_all_rules=self)

    def _over(self, plan: Plan, build: Callable[[Estimate], Plan], **changes: Any) -> Compiled:
        """The query with another plan, which has all that it may have in other forms."""
        return replace(self, plan=plan, build=build, texts={}, _kept={}, _closed={}, _apart={}, planned_rows=0,
                       **{"goal": None, "narrow": _as_it_is, **changes})

    @cached_property
    def by_representatives(self) -> Compiled | None:
        """The query with closures that are computed by representatives of equal terms; None where these are told apart."""
        if self.equality.obstacle != "" or any(closed.view_lengths for closed in self.closures):
            return None
        return self._over(with_representatives(self.plan), lambda live: with_representatives(self.build(live)),
                          schema_words=frozenset(), equality=Equality())

    @cached_property
    def in_shards(self) -> Compiled | None:
        """The query with a plan that shards evaluate in parts, and closures that they make together, if need be without rules of equality:
        where a term is equal to another these report NOT_UNIQUE, as those `under_unique_names` do. None where shards cannot."""
        if self.timed or self.derived is not None or isinstance(self.plan, Begun):
            return None
        found = {closed.name: divided(closed) for closed in self.closures}
        reduced = {closed.name: less for closed in self.closures
                   if found[closed.name] is None and (less := self.unequal(closed)) is not None}
        found |= {name: divided(less) for name, less in reduced.items()}
        if None in found.values():
            return None
        shared = with_closures(self.plan, lambda closed: found[closed.name] or closed) if found else self.plan
        plan = with_shards(shared, self.statement.streams, self.estimate, _follows_from_its_variables)
        if plan is None or not any(isinstance(below, Gather) for below in walk(plan)):
            return None
        return self._over(plan, lambda live: plan, under_all_rules=self.under_all_rules or (self if reduced else None))

    def with_own_closures(self, mark: str, *, static: bool) -> Compiled:
        """The same with closures of its own, whose names end in `mark`: those with intervals, which a query keeps, or all of them, `static`
        ones too."""
        if mark not in self._apart:
            if len(self._apart) > 1:    # each time that something is kept anew it has another mark
                self._apart.clear()
            plan = with_names(self.plan, lambda closed: f"{closed.name}_{mark}" if static or closed.has_intervals else closed.name)
            self._apart[mark] = replace(self, plan=plan, texts={}, _kept={}, _closed={}, _apart={})
        return self._apart[mark]

    @cached_property
    def sampled(self) -> Plan | None:
        """The plan with samples of kept relations in place of the parts that can be kept; None where there are none."""
        plan = with_kept(self.plan, self.statement.streams, _follows_from_its_variables)
        return None if plan is self.plan else plan

    @cached_property
    def shared(self) -> Plan | None:
        """The same with relations that serve queries with other constants and filters, too."""
        plan = with_kept(self.plan, self.statement.streams, _follows_from_its_variables, general=True)
        return None if plan is self.plan else plan

    @cached_property
    def shape(self) -> Shape | None:
        """The shape of the plan over relations that serve other queries, too, together with all else that its answers depend on."""
        query = self.rewritten.query
        template = [(t.subject, t.predicate, t.object) for t in query.template] if isinstance(query, Construct) else []
        if self.shared is None or any(isinstance(term, Variable) and term.name.startswith("_:") for made in template for term in made):
            return None
        shape = shape_of(self.shared, _follows_from_its_variables)
        if shape is None:
            return None
        return replace(shape, key=(shape.key, type(query), tuple(template), self.statement.columns, self.statement.on_change))

    def kept_texts(self, text: PlanText, typed: bool) -> tuple[KeptText, ...]:
        """The statements of the kept relations that a text samples."""
        made = text.kept
        for name, source in made.items():
            if (name, typed) not in self._kept:
                lowering = Lowering(DIALECTS["local"], name, self._label_offset, quick=typed)
                self._kept[name, typed] = KeptWriter(source, lowering).text()
        return tuple(self._kept[name, typed] for name in made)

    def text(self, executor: str, typed: bool = True, form: Form = "plain", kinds: Kinds = ANY_KIND) -> PlanText:
        """The plan's text for the executor `sql` or `local`; without `typed`, values are compared by Python alone. It serves as long as the
        objects in windows have no other kinds. In the form `sampled` what can be kept is, in `shared` in relations for others, too."""
        key = (executor, typed, form, kinds)
        text = self.texts.get(key)
        if text is None:
            if len(self.texts) >= MOST_TEXTS:
                self.texts.clear()
            text = self.texts[key] = self.emit(executor, typed, self.plan_in(form), kinds, by_panes=True)
        return text

    def plan_in(self, form: Form) -> Plan:
        """The plan in one of its forms, where it has that."""
        return (self.sampled if form == "sampled" else self.shared if form == "shared" else None) or self.plan

    @property
    def _label_offset(self) -> int:
        return -1 if self.statement.on_change else 0

    def emit(self, executor: str, typed: bool, plan: Plan, kinds: Kinds, by_panes: bool = False) -> PlanText:
        """The text of a plan, its own or one that stands for it and others, over windows whose objects have no other kinds."""
        dialect = DIALECTS[executor]
        lowering = Lowering(dialect, self.identity, self._label_offset, quick=typed)
        emitter = Emitter(dialect, lowering, typed_variables(plan) if typed else frozenset(), kinds, by_panes=by_panes)
        query = self.rewritten.query
        if isinstance(self.plan, Begun):
            text = PlanText((), begun_text(self.plan), (self.plan.source,))
        elif isinstance(query, Construct):
            template = tuple((t.subject, t.predicate, t.object) for t in query.template)
            text = emitter.graph_text(plan, template)  # type: ignore[arg-type]
        elif isinstance(query, Describe):
            text = emitter.graph_text(plan, (TRIPLE,))
        else:
            columns = tuple(map(Variable, self.statement.columns))
            text = (PlanText((), "", (), parts=(("gathered0", emitter.text(plan.input, columns)),)) if isinstance(plan, Gather)
                    else emitter.text(plan, columns))
        read = (*text.sources, *(source for _, part in text.parts for source in part.sources))
        made = tuple(self._closure(source, executor, typed) for source in closures(read))
        return self._with_tables(replace(text, closures=made))

    def _with_tables(self, text: PlanText) -> PlanText:
        leaves = [leaf for source in text.sources for leaf in own_leaves(source)]
        return replace(text, tables=frozenset(tables(leaves, self.statement.windows)),
                       parts=tuple((name, self._with_tables(part)) for name, part in text.parts))

    def _closure(self, source: ClosedSource, executor: str, typed: bool) -> ClosureText:
        """What a closure says does not depend on the plan above it, and those of several queries may be equal: then they have one text, and
        are made once."""
        reported = self.plan.role if isinstance(self.plan, Begun) and self.plan.source.name == source.name else None
        atoms_only = isinstance(self.plan, Scan) and isinstance(self.plan.source, AtomsSource) and source.has_intervals
        key = source.name, executor, typed, self._label_offset, reported, atoms_only
        text = _WRITTEN.get(key)
        if text is None:
            dialect = DIALECTS[executor]
            lowering = Lowering(dialect, source.name, self._label_offset, quick=typed)
            text = _WRITTEN[key] = closure_text(source, dialect, lowering, reported, atoms_only)
            if not text.constants:      # of large schemas, which take much memory
                _RECENT.append(text)
        if len(self._closed) >= MOST_TEXTS:
            self._closed.clear()
        self._closed[key] = text
        return text

    def constants_of(self, closure: ClosureText) -> dict[str, pa.Table]:
        """The tables of constants that a closure reads."""
        for name, constants in closure.constants.items():
            if name not in self._constants:
                self._constants[name] = constants_table(constants)
        return {name: self._constants[name] for name in closure.constants}

    def tree(self) -> dict[str, Any]:
        return plan_tree(self.plan, self.estimate)

    def explain(self, stage: str = "spark", form: Form = "plain") -> str:
        """The statement at a stage, as text; the logical plan in one of its forms."""
        match stage:
            case "parsed" | "validated":
                return show(self.statement)
            case "rewritten":
                return show_passes(self.passes) + show(self.rewritten)
            case "logical":
                chain = "" if self.staged is None else "\n" + explain_staged(self.staged)
                query = self.statement.query
                needs = describe(memory(self.passes[-1].rules, query.rules.granularity_ms)) if isinstance(query, TimedProgram) else ""
                return explain_plan(self.plan_in(form), self.estimate) + chain + needs
            case "spark" if isinstance(self.plan, TimedPlan):
                return f"-- executor: local, a step in one task\n-- state: in the worker, and in a file\n{step_texts(self.plan.program)}"
            case "spark":
                own = replace(self, texts={}, _kept={}, _apart={})   # evaluations may go on in another thread: what they keep is left alone
                keeps = own.sampled or (own.with_goal or own).keeps_closures
                either = "incremental or recompute, by cost" if keeps else "recompute"
                kept = "incremental in tasks, recompute by Spark SQL" if isinstance(self.plan, Begun) else either
                text = own.text("sql")
                graphs = f"-- paths: {growing()}\n" if text.rounds else ""
                return ("-- executor: local where windows fit into a worker, sql above\n"
                        f"-- strategy: {kept}\n{graphs}{self.equality.text()}"
                        f"WITH ticks, windows (for each evaluation),\n{text.body}")
        raise ValueError(f"no stage '{stage}'; there are {', '.join(STAGES)}")


def constants_table(constants: Constants) -> pa.Table:
    """The table of some constants, made of parts: else the threads beside it would wait for one call over all rows."""
    table = pa.concat_tables([pa.table({f"c{number}": pa.array(tokens, pa.string()) for number, tokens in enumerate(zip(*rows))})
                              for rows in pieces(constants.rows)]).combine_chunks()
    if constants.typed is not None:
        for name, column in zip(("kind", "number", "micros"), typed_columns(table[f"c{constants.typed}"].combine_chunks())):
            table = table.append_column(name, column)
    return table


def _follows_from_its_variables(read: Expression) -> bool:
    return not is_volatile(read) and not is_rowwise(read)
