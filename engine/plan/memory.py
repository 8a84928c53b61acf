"""How much a program of forward-propagating rules has to keep, from its text alone.

Wałęga et al., Web Semantics, 2023: the window of Algorithm 1; the bound of Algorithm 6, which no stream can break (Theorem 15). Times are
milliseconds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from engine.ir.notation import duration
from engine.ir.rules import Assign, At, BoxMinus, DiamondMinus, Formula, Negation, Rule, WindowFormula, atoms
from engine.timeline import MAX, Interval

MOST_WRITTEN = 15
"""A bound of more digits than this is told by its magnitude only."""
SHOWN = 100
"""So many constants stand in the bound that is shown."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At most `facts` facts, where that can be written; in any case at most 10 to the power of `log10`."""

    facts: int | None
    log10: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the paper's algorithms need to know of a program, and what bounds follow. `window_ms` is t_Pi: facts older than this are
    forgotten, but for `history`: the predicates of which must be known for ever that they held once (an operator looks back at them without
    bound). `granularity_ms` is gran(Pi), the length of the shortest interval: None without intervals, and 0 where one is punctual. `rules`,
    `predicates` and `arity` are those of the normal form. `unbounded` says why no bound holds, if none does."""

    window_ms: int
    history: tuple[str, ...]
    granularity_ms: int | None
    least_end_ms: int | None
    rules: int
    predicates: int
    arity: int
    unbounded: str | None = None

    @property
    def stream_independent(self) -> bool:
        """Whether Theorem 15 gives a bound: whatever the stream's time stamps, and however dense they are."""
        return self.unbounded is None and self.granularity_ms != 0

    def bound(self, objects: int, step_ms: int) -> Bound | None:
        """Theorem 15: the most facts that Algorithm 6 holds over a stream of so many constants, moving on by at most `step_ms` at once. An
        exponent that is no whole number is rounded up. None where the program has a punctual interval, or `unbounded` says why."""
        if not self.stream_independent or not self.rules:
            return None
        kept = 2 * ((Fraction(self.window_ms, self.granularity_ms) if self.granularity_ms else 0) + 2)
        steps = -(-(self.window_ms + step_ms) // self.least_end_ms) if self.least_end_ms else 0
        atoms = math.log10(self.predicates or 1) + self.arity * math.log10(max(objects, 1))
        size = math.log10(9) + 2 * (math.log10(kept) + steps * math.log10(self.rules)) + atoms
        if size > MOST_WRITTEN:
            return Bound(None, size)
        return Bound(math.ceil(9 * (kept * self.rules ** steps) ** 2 * self.predicates * objects ** self.arity), size)


def memory(normal: Sequence[Rule], granularity_ms: int = 0) -> Memory:
    """The analysis of rules in normal form (engine/rewrite/temporal.py), on a timeline of such granules."""
    distances = [distance for rule in normal for part in rule.body if (distance := _looks_back(part, granularity_ms)) is not None]
    ends = [end for distance in distances for end in _ends(distance)]
    lengths = [length for distance in distances if (length := _length(distance)) is not None]
    predicates = {(atom.predicate, len(atom.terms)) for rule in normal for part in (rule.head, *rule.body) for atom in atoms(part)}
    history = sorted({atom.predicate for rule in normal for part in rule.body if isinstance(part, DiamondMinus) and part.distance.hi == MAX
                      for atom in atoms(part)})
    return Memory(window_ms=max(ends, default=0), history=tuple(history), granularity_ms=min(lengths, default=None),
                  least_end_ms=min((end for end in ends if end), default=None), rules=len(normal), predicates=len(predicates),
                  arity=max((arity for _, arity in predicates), default=0), unbounded=next(_beyond(normal), None))


def describe(found: Memory) -> str:
    """The analysis as text, one line for each thing; the bound for SHOWN constants and steps of a second."""
    lines = [f"window {duration(found.window_ms)}: what ended before is forgotten",
             f"history {', '.join(found.history) or 'none'}" + (": that it held once is kept for ever" if found.history else "")]
    bound = found.bound(SHOWN, 1_000)
    if bound is not None:
        facts = f"{bound.facts:,}" if bound.facts is not None else f"10^{bound.log10:.1f}"
        lines.append(f"bound {facts} facts, whatever the stream, for {SHOWN} constants and steps of 1s")
    elif found.rules:
        lines.append(f"bound none: {found.unbounded or 'an operator has a punctual interval, so it depends on how dense time stamps are'}")
    return "memory\n" + "".join(f"  {line}\n" for line in lines)


def _looks_back(part: Formula, granularity_ms: int) -> Interval | None:
    match part:
        case DiamondMinus(distance=distance) | BoxMinus(distance=distance):
            return distance
        case WindowFormula(unit="time", size=size):
            return Interval(0, 2 * size * granularity_ms)
    return None


def _beyond(rules: Sequence[Rule]) -> Iterator[str]:
    """What the theorems do not speak of."""
    for rule in rules:
        if any(isinstance(part, Assign) for part in rule.body):
            yield "rules make terms, so there are endlessly many"
        for part in (rule.head, *rule.body):
            if isinstance(part, Negation):
                yield "there is no theorem about negation"
            if isinstance(part, (At, WindowFormula)) or rule.window_ms is not None:
                yield "there is no theorem about windows and instants"


def _ends(distance: Interval) -> Iterator[int]:
    """The ends of an interval in ms, without infinite ones."""
    yield distance.lo // 2
    if distance.hi != MAX:
        yield (distance.hi + 1) // 2


def _length(distance: Interval) -> int | None:
    if distance.hi == MAX:
        return None
    low, high = _ends(distance)
    return high - low
