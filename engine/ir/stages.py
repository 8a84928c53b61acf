"""Rule sets that have a time of their own beside those that have none, and the order in which both are evaluated together.

A *timeline* is dense time, where every point counts, or granules of one length. Rules that depend on each other stand on one timeline; what
a stage derives is what the later ones are given. Rules without time stand where those do that need them: on granules where they depend on
rules there that depend on them, else on dense time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.grouping import by_key
from engine.ir.rules import At, BoxMinus, BoxPlus, DiamondMinus, Fact, Rule, RuleSet, WindowFormula, nested
from engine.ir.spans import Span
from engine.ir.strata import Known, components, heads, reachable
from engine.timeline import ALWAYS


@dataclass(frozen=True, slots=True)
class Timeline:
    """Granules of `granularity_ms`, the first of which has `start_at_ms` (None: the first event), or dense time where that is 0."""

    granularity_ms: int = 0
    start_at_ms: int | None = None

    def ended(self, ms: int) -> int:
        """The end of the last granule that has ended at an instant; on dense time the instant."""
        return ms // self.granularity_ms * self.granularity_ms if self.granularity_ms else ms

    def __str__(self) -> str:
        return f"granules of {self.granularity_ms} ms" if self.granularity_ms else "dense time"


DENSE = Timeline()


@dataclass(frozen=True, slots=True)
class Placed:
    """A rule of a statement with its timeline, None where it has none, and the name of its rule set."""

    rule: Rule
    timeline: Timeline | None
    of: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """Rules that are evaluated together on one timeline, after the stages that it `reads`. `timed` are those with a time of their own: what
    they derive is seen by queries."""

    timeline: Timeline
    rules: tuple[Rule, ...]
    timed: tuple[Rule, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Division:
    """The rule sets of a statement that have no time, and the rules of the others; `facts` hold for a time. What holds always is of the
    plain ones."""

    plain: tuple[RuleSet, ...]
    timed: tuple[Placed, ...]
    facts: tuple[Fact, ...]

    @property
    def is_timed(self) -> bool:
        """Whether there is anything with a time of its own."""
        return bool(self.timed or self.facts)


class MixedTimelines(ValueError):
    """Rules that depend on each other and stand on two timelines."""

    def __init__(self, one: Placed, other: Placed) -> None:
        super().__init__(f"{_called(one)} is on {one.timeline} and {_called(other)} is on {other.timeline}, and each needs what the other "
                         "derives")
        self.span: Span | None = one.rule.span


def timeline_of(rules: RuleSet) -> Timeline | None:
    """The timeline of a rule set; None where its rules say nothing of time. A Window of Streaming RIF-Core is not looked at."""
    if rules.granularity_ms:
        return Timeline(rules.granularity_ms, rules.start_at_ms)
    timed = any(isinstance(inner, (DiamondMinus, BoxMinus, BoxPlus, At, WindowFormula))
                for rule in rules.rules for part in (rule.head, *rule.body) for inner in nested(part))
    return DENSE if timed or any(fact.interval != ALWAYS for fact in rules.facts) else None


def divide(sets: Iterable[RuleSet]) -> Division:
    """The rule sets of a statement by whether they have a time of their own. Rules with a Window of their own have where others do: they
    are on dense time. A timed rule that says of an atom that it holds where it does is none."""
    listed = list(sets)
    lines = {id(one): timeline_of(one) for one in listed}
    if not any(lines.values()):
        return Division(tuple(listed), (), ())
    plain, placed, facts = list[RuleSet](), list[Placed](), list[Fact]()
    for one in listed:
        line = lines[id(one)]
        always = tuple(fact for fact in one.facts if fact.interval == ALWAYS)
        facts += (fact for fact in one.facts if fact.interval != ALWAYS)
        windowed = [rule for rule in one.rules if line is None and rule.window_ms is not None]
        placed += (Placed(rule, line or DENSE, one.name) for rule in (one.rules if line else windowed) if rule.body != (rule.head,))
        rest = () if line else tuple(rule for rule in one.rules if rule.window_ms is None)
        if rest or always:
            plain.append(RuleSet(one.name, rest, always))
    return Division(tuple(plain), tuple(placed), tuple(facts))


def stages(rules: Sequence[Placed]) -> tuple[Stage, ...]:
    """The rules in stages; rules without time that no other one needs are in none. Raises MixedTimelines."""
    needs = _needs(rules)
    used = reachable([number for number, placed in enumerate(rules) if placed.timeline is not None], needs.__getitem__)
    made: list[_Stage] = []
    at: dict[int, int] = {}
    for group in components({number: needs[number] for number in sorted(used)}):
        line = _line(rules, group)
        below = {at[need] for number in group for need in needs[number] if need in at}
        own = frozenset((line.granularity_ms,)) if line.granularity_ms else frozenset[int]()
        lags = own.union(*(made[place].lags for place in below))
        least = max((place + ((made[place].line, made[place].lags) != (line, lags)) for place in below), default=0)
        place = next((n for n in range(least, len(made)) if (made[n].line, made[n].lags) == (line, lags)), len(made))
        if place == len(made):
            made.append(_Stage(line, lags))
        made[place].numbers += group
        made[place].reads |= below - {place}
        at |= dict.fromkeys(group, place)
    return tuple(stage.stage(rules) for stage in made)


@dataclass(slots=True)
class _Stage:
    """A stage that is being made. `lags` are the granularities that it waits for: what stands in one stage is final at the same times."""

    line: Timeline
    lags: frozenset[int]
    numbers: list[int] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)

    def stage(self, rules: Sequence[Placed]) -> Stage:
        """The stage, its rules in the order in which they are given."""
        own = [rules[number] for number in sorted(self.numbers)]
        timed = tuple(placed.rule for placed in own if placed.timeline is not None)
        return Stage(self.line, tuple(placed.rule for placed in own), timed, tuple(sorted(self.reads)))


def _line(rules: Sequence[Placed], group: Sequence[int]) -> Timeline:
    """The one timeline of rules that depend on each other."""
    timed = [rules[number] for number in group if rules[number].timeline is not None]
    for other in timed:
        if other.timeline != timed[0].timeline:
            raise MixedTimelines(timed[0], other)
    return timed[0].timeline or DENSE if timed else DENSE


def _needs(rules: Sequence[Placed]) -> list[list[int]]:
    """For each rule those that may derive what it asks for."""
    makers = by_key((head, number) for number, placed in enumerate(rules) for head in heads(placed.rule))
    known = Known(makers)
    return [sorted({maker for need, _ in known.needs(placed.rule) for maker in makers[need]}) for placed in rules]


def _called(placed: Placed) -> str:
    where = f" (line {placed.rule.span.line})" if placed.rule.span is not None else ""
    return f"the rule {placed.rule.name or _head_of(placed.rule)}{where} of {placed.of or 'a rule set'}"


def _head_of(rule: Rule) -> str:
    return ", ".join(f"for {(link or predicate).removeprefix('<').removesuffix('>')}" for predicate, link in heads(rule))
