"""Rule sets with a time of their own beside rules without one, from scratch at an evaluation time: what of their model a query sees.

The model is that of all of them over the whole streams of the statement: events at their instants, the static graphs always. Rules without
time apply point by point (engine/ir/stages.py says on which timeline). What is final when T comes depends on events before T only: of a
timeline of granules those that have ended, and so of all that follows from it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from engine.functions.expressions import Context
from engine.ir.rules import TRIPLE, Atom, Fact, Falsum, Formula, Rule, RuleSet, Table, atoms, rule_variables
from engine.ir.stages import Division, Placed, Stage, divide, stages
from engine.ir.substitution import replaced
from engine.ir.terms import RDF, RDF_TYPE, RDFS, Constant, Variable
from engine.records import Event, Triple
from engine.reference.closure import Known, is_rdf, saturated
from engine.reference.dataset import EMPTY, Graph
from engine.reference.formulas import Ground, Intervals, Row, as_fact, ground, in_quick_order, point_of, unify
from engine.reference.granules import Granules
from engine.reference.temporal import evaluate_intervals
from engine.timeline import ALWAYS, MIN, Interval, granule, intersect

Held = dict[Ground, Intervals]
Origin = tuple[Rule, Row]
OWL = "http://www.w3.org/2002/07/owl#"
_OF_DATA = frozenset(f"<{OWL}{name}>" for name in ("sameAs", "differentFrom", "Thing", "Nothing"))
_OF_LISTS = frozenset(("list-member", "list-pair"))
_stages = lru_cache(maxsize=64)(stages)     # they are the same at each evaluation time


def seen_at(tick: int, on_change: bool, sets: Sequence[RuleSet], events: Iterable[Event], static: Graph) -> Graph:
    """What the rule sets with a time of their own derive that holds when T comes: triples that are not those of the static graphs.
    Nothing where no set has one. Raises stages.MixedTimelines."""
    division = divide(sets)
    if not division.is_timed:
        return EMPTY
    streamed = [as_fact((TRIPLE, triple), point_of(event.t)) for event in events if event.t < tick for triple in event.triples]
    rules, always, _ = plain_rules(division, static)
    always += [as_fact((TRIPLE, triple), ALWAYS) for triple in static.triples]
    now = 2 * tick - (2 if on_change else 1)
    shown = {ground(fact.atom, {}) for fact in division.facts if now in fact.interval}
    held, ends = list[Held](), list[int]()
    for stage in _stages((*rules, *division.timed)):
        end = stage.timeline.ended(min((ends[place] for place in stage.reads), default=tick))
        derived = [as_fact(atom, when) for place in stage.reads for atom, found in held[place].items() for when in found]
        model = _model(stage, end, streamed, division.facts, always, derived)
        held.append({atom: found for atom, found in model.items() if is_head(atom, stage.rules)})
        ends.append(end)
        point = now if end == tick and not stage.timeline.granularity_ms else 2 * end - 1
        shown |= {atom for atom, found in model.items() if is_head(atom, stage.timed) and any(point in when for when in found)}
    triples = {(terms[0], terms[1], terms[2]) for predicate, terms in shown if predicate == TRIPLE}
    return Graph(triple for triple in triples - static.triples if is_rdf(triple))


def _model(stage: Stage, end: int, streamed: Sequence[Fact], facts: Sequence[Fact], always: Sequence[Fact],
           derived: Sequence[Fact]) -> Held:
    """What holds by the rules of a stage up to the time `end`."""
    program = RuleSet("stage", stage.rules, (), stage.timeline.granularity_ms, stage.timeline.start_at_ms)
    if not program.granularity_ms:
        return dict(evaluate_intervals(program, [*streamed, *always], end, Context(end), [*facts, *derived]).facts)
    length = program.granularity_ms
    last = granule(end // length - 1, length).hi
    inputs = [*streamed, *(clipped(facts, MIN, last))]
    if program.start_at_ms is None and not inputs:
        return {}       # the timeline has not begun
    first = Granules(program, inputs, Context(end)).start
    granules = Granules(program, [*inputs, *always], Context(end), clipped(derived, granule(first, length).lo, last))
    granules.run(end // length - 1)
    return granules.final()


def clipped(facts: Iterable[Fact], first: int, last: int) -> list[Fact]:
    """What of some facts lies between two points."""
    between = [(fact, intersect(fact.interval, Interval(first, last))) for fact in facts] if first <= last else []
    return [Fact(fact.atom, when) for fact, when in between if when is not None]


def plain_rules(division: Division, static: Graph) -> tuple[list[Placed], list[Fact], dict[Rule, Origin]]:
    """The rules without time as they are applied to data, and what follows from the schema alone. Built-in ones know the schema of the
    static graphs; those that speak of any property or class, as equality does, are for what a query sees and not for the model. Those
    that were made for a schema are told with what they come from."""
    rules, always, origins = _plain_rules(division.plain, static.triples)
    return list(rules), list(always), origins


@lru_cache(maxsize=64)
def _plain_rules(plain: tuple[RuleSet, ...], static: frozenset[Triple]) -> tuple[tuple[Placed, ...], list[Fact], dict[Rule, Origin]]:
    """They are the same at each evaluation time."""
    rules, origins = list[Placed](), dict[Rule, Origin]()
    always = [fact for one in plain for fact in one.facts]
    built_in = [rule for one in plain for rule in one.rules if rule.role == "built-in"]
    known = saturated(Graph(static), RuleSet("schema", tuple(rule for rule in built_in if not isinstance(rule.head, Falsum))))
    for one in plain:
        for rule in one.rules:
            if isinstance(rule.head, Falsum):
                continue
            if rule.role != "built-in":
                rules.append(Placed(rule, None, one.name))
                continue
            for made, row in _about_data(rule, known):
                if not any(isinstance(part, Atom) for part in made.body):
                    assert isinstance(made.head, Atom)
                    always += [] if rule_variables(made.head) else [Fact(made.head, ALWAYS)]
                elif not any(map(_is_open, (made.head, *made.body))):
                    rules.append(Placed(made, None, one.name))
                    origins.setdefault(made, (rule, row))
    return tuple(dict.fromkeys(rules)), always, origins


def _about_data(rule: Rule, known: Known) -> Iterator[tuple[Rule, Row]]:
    """A built-in rule for each way in which the schema satisfies what it asks of it."""
    schema = [part for part in rule.body if is_of_schema(part)]
    data = [part for part in rule.body if part not in schema]
    assert isinstance(rule.head, Atom)
    for row in known.solutions(in_quick_order(schema)):
        bound = {Variable(name): Constant(token) for name, token in row.items()}
        head = replaced(rule.head, bound)
        assert isinstance(head, Atom)
        yield Rule(head, tuple(replaced(part, bound) for part in data), rule.name, role=rule.role), row


def is_of_schema(part: Formula) -> bool:
    """Whether a part of a built-in rule's body is about the schema."""
    if not isinstance(part, Atom) or part.predicate != TRIPLE:
        return isinstance(part, Table) or isinstance(part, Atom) and part.predicate in _OF_LISTS
    _, link, object_ = part.terms
    word = object_ if link == Constant(RDF_TYPE) else link
    if not isinstance(word, Constant) or word.token in _OF_DATA:
        return False
    return word.token.startswith((f"<{OWL}", f"<{RDFS}")) or word.token in (f"<{RDF}first>", f"<{RDF}rest>")


def _is_open(part: object) -> bool:
    """Whether an atom is about any property or any class."""
    if not isinstance(part, Atom) or part.predicate != TRIPLE:
        return False
    _, link, object_ = part.terms
    return isinstance(link, Variable) or link.token == RDF_TYPE and isinstance(object_, Variable)


def is_head(atom: Ground, rules: Iterable[Rule]) -> bool:
    """Whether one of some rules may derive an atom."""
    return any(unify(head, atom, {}) is not None for rule in rules for head in atoms(rule.head))
