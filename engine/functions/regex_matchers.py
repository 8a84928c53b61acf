"""XPath regular expressions run in two ways: as patterns of Python's `re`, meaning for meaning, and in time proportional to pattern times
text, for the patterns on which backtracking could take forever.

The latter is a Pike machine: all threads of the non-deterministic automaton go through the text together, in the order in which
backtracking would try them, so the match found is the same (but for repeats of what can be empty, where `re` has its own rule). Back
references have no such automaton.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.functions import regex_syntax as syntax
from engine.functions.charclasses import Ranges
from engine.functions.context import ExpressionError

_ANY = "(?s:.)"


class Writer:
    """Writes nodes as text for `re`, to be compiled with IGNORECASE where `ignore_case`."""

    def __init__(self, flags: str) -> None:
        self.ignore_case, self.multi_line, self.dot_all = "i" in flags, "m" in flags, "s" in flags

    def compile(self, node: syntax.Node) -> re.Pattern[str]:
        return re.compile(self.write(node), re.IGNORECASE if self.ignore_case else 0)

    def write(self, node: syntax.Node) -> str:
        match node:
            case syntax.Char(char):
                return re.escape(char)
            case syntax.CharClass():
                return self.char_class(node)
            case syntax.Dot():
                return _ANY if self.dot_all else "[^\\n]"
            case syntax.Begin():
                return "(?:\\A|(?<=\\n)(?!\\Z))" if self.multi_line else "\\A"
            case syntax.End():
                return "(?:(?=\\n)|(?<!\\n)\\Z)" if self.multi_line else "\\Z"
            case syntax.Reference(number):
                return f"(?({number})(?:\\{number})|)"
            case syntax.Group(body, number):
                return f"({'' if number else '?:'}{self.write(body)})"
            case syntax.Sequence(parts):
                return "".join(map(self.write, parts))
            case syntax.Choice(branches):
                return "(?:" + "|".join(map(self.write, branches)) + ")"
            case syntax.Repeat(body, least, most, lazy):
                return f"(?:{self.write(body)}){{{least},{'' if most is None else most}}}{'?' if lazy else ''}"

    def char_class(self, node: syntax.CharClass) -> str:
        """A class; under flag i its categories still tell upper from lower case."""
        fixed = tuple(pair for ranges in node.fixed for pair in ranges)
        minus = f"(?!{self.char_class(node.minus)})" if node.minus else ""
        if not node.ranges and not fixed:
            return minus + (_ANY if node.negated else "(?!)")
        if fixed and node.ranges and self.ignore_case:
            either = f"(?:[{_ranges(node.ranges)}]|(?-i:[{_ranges(fixed)}]))"
            return minus + (f"(?:(?!{either}){_ANY})" if node.negated else either)
        text = f"[{'^' if node.negated else ''}{_ranges(node.ranges + fixed)}]"
        return minus + (f"(?-i:{text})" if fixed and self.ignore_case else text)


def _ranges(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08X}" if low == high else f"\\U{low:08X}-\\U{high:08X}" for low, high in ranges)


LARGEST_PROGRAM = 5000
MOST_STEPS = 1_000_000

_MOST_STATES = 2000
_NEIGHBOURS = {"": 0, "\n": 1}

Slots = tuple[int, ...]


class _Memo(dict[str, bool]):
    """Whether a character matches, worked out once each."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self.pattern = pattern

    def __missing__(self, char: str) -> bool:
        found = self[char] = self.pattern.fullmatch(char) is not None
        return found


@dataclass(slots=True)
class _Step:
    """One instruction: take a character (`memo`), test a place (`place`), remember it (`slot`); then go to `targets`."""

    targets: list[int]
    memo: _Memo | None = None
    place: re.Pattern[str] | None = None
    slot: int = -1

    def takes(self, char: str) -> bool:
        return self.memo is not None and self.memo[char]


@dataclass(slots=True)
class _State:
    """A set of threads: the steps that take a character, whether one is at the end, and the set after each character met."""

    takers: tuple[int, ...]
    accepts: bool
    onward: dict[str, frozenset[int]]


class Machine:
    """The automaton of a tree. Raises ExpressionError where it would be too large or has back references."""

    def __init__(self, tree: syntax.Node, groups: int, flags: str) -> None:
        self.writer = Writer(flags)
        self._unset = (-1,) * (2 * groups + 2)
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self.steps: list[_Step] = []
        self._emit(syntax.Group(tree, 0), whole=True)
        self.end = self._step()
        self._placed = any(step.place is not None for step in self.steps)

    def search(self, text: str) -> bool:
        """Whether any part of the text matches: as `matches`, but with every set of threads met so far remembered."""
        pending: frozenset[int] = frozenset()
        budget = MOST_STEPS
        for at in range(len(text) + 1):
            key = pending, self._surroundings(text, at)
            state = self._states.get(key)
            if state is None:
                state = self._closure(pending, text, at)
                budget = self._spend(budget, len(self.steps))
                self._states[key] = state
            if state.accepts:
                return True
            if at < len(text):
                char = text[at]
                found = state.onward.get(char)
                if found is None:
                    found = frozenset(self.steps[pc].targets[0] for pc in state.takers if self.steps[pc].takes(char))
                    budget = self._spend(budget, len(state.takers))
                    state.onward[char] = found
                pending = found
        return False

    def _closure(self, pending: frozenset[int], text: str, at: int) -> _State:
        now: list[tuple[int, Slots]] = []
        seen: set[int] = set()
        for pc in (*pending, 0):
            self._follow(pc, self._unset, text, at, seen, now)
        takers = tuple(pc for pc, _ in now if pc != self.end)
        return _State(takers, len(takers) < len(now), {})

    def _surroundings(self, text: str, at: int) -> int:
        """What ``^`` and ``$`` look at, as a number."""
        if not self._placed:
            return 0
        before, after = text[at - 1:at] if at else "", text[at:at + 1]
        return _NEIGHBOURS.get(before, 2) * 3 + _NEIGHBOURS.get(after, 2)

    def _spend(self, budget: int, steps: int) -> int:
        if budget < steps:
            raise ExpressionError("the text is too long for this regular expression")
        if len(self._states) > _MOST_STATES:
            self._states.clear()
        return budget - steps

    def matches(self, text: str) -> Iterator[list[str | None]]:
        """Each match, left to right, none inside another: the texts of the whole and of the groups, after what lies before it."""
        at, budget = 0, MOST_STEPS
        while at <= len(text):
            slots, budget = self._run(text, at, budget)
            if slots is None:
                return
            texts = [text[low:high] if low >= 0 else None for low, high in zip(slots[::2], slots[1::2])]
            yield [text[at:slots[0]], *texts]
            at = slots[1] if slots[1] > slots[0] else slots[1] + 1

    def _run(self, text: str, start: int, budget: int) -> tuple[Slots | None, int]:
        """The first match from `start` on, and what is left of the budget of steps."""
        found: Slots | None = None
        threads: list[tuple[int, Slots]] = []
        for at in range(start, len(text) + 1):
            seen: set[int] = set()
            now: list[tuple[int, Slots]] = []
            for pc, slots in threads:
                self._follow(pc, slots, text, at, seen, now)
            if found is None:
                self._follow(0, self._unset, text, at, seen, now)
            budget = self._spend(budget, len(seen) + 1)
            threads = []
            for pc, slots in now:
                step = self.steps[pc]
                if step.memo is None:   # the end: threads after this one have a lower rank
                    found = slots
                    break
                if at < len(text) and step.takes(text[at]):
                    threads.append((step.targets[0], slots))
            if found is not None and not threads:
                break
        return found, budget

    def _follow(self, pc: int, slots: Slots, text: str, at: int, seen: set[int], now: list[tuple[int, Slots]]) -> None:
        """Add to `now` the steps that take a character (or end) and are reached from `pc` without taking one, best first."""
        stack = [(pc, slots)]
        while stack:
            pc, slots = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            step = self.steps[pc]
            if step.memo is not None or pc == self.end:
                now.append((pc, slots))
                continue
            if step.place is not None and step.place.match(text, at) is None:
                continue
            if step.slot >= 0:
                slots = slots[:step.slot] + (at,) + slots[step.slot + 1:]
            stack.extend((target, slots) for target in reversed(step.targets))

    def _step(self, **fields: object) -> int:
        if len(self.steps) >= LARGEST_PROGRAM:
            raise ExpressionError("regular expression too large")
        self.steps.append(_Step([len(self.steps) + 1], **fields))  # type: ignore[arg-type]
        return len(self.steps) - 1

    def _emit(self, node: syntax.Node, whole: bool = False) -> None:
        """Append the steps of a node; they go on to the step after the last."""
        match node:
            case syntax.Sequence(parts):
                for part in parts:
                    self._emit(part)
            case syntax.Choice(branches):
                self._choice(branches)
            case syntax.Repeat(body, least, most, lazy):
                for _ in range(least):
                    self._emit(body)
                self._optional(body, None if most is None else most - least, lazy)
            case syntax.Group(body, number) if number or whole:
                self._step(slot=2 * number)
                self._emit(body)
                self._step(slot=2 * number + 1)
            case syntax.Group(body):
                self._emit(body)
            case syntax.Begin() | syntax.End():
                self._step(place=self.writer.compile(node))
            case syntax.Reference():
                raise ExpressionError("back references in a regular expression that could take forever")
            case _:
                self._step(memo=_Memo(self.writer.compile(node)))

    def _choice(self, branches: tuple[syntax.Node, ...]) -> None:
        fork = self._step()
        self.steps[fork].targets = []
        ends = []
        for branch in branches:
            self.steps[fork].targets.append(len(self.steps))
            self._emit(branch)
            ends.append(self._step())
        for end in ends:
            self.steps[end].targets = [len(self.steps)]

    def _optional(self, body: syntax.Node, most: int | None, lazy: bool) -> None:
        """``body*`` (`most` None), or up to `most` times the body."""
        forks = []
        for _ in range(1 if most is None else most):
            forks.append(self._step())
            self._emit(body)
        if most is None:
            loop = self._step()
            self.steps[loop].targets = [forks[0]]
        for fork in forks:
            self.steps[fork].targets = [len(self.steps), fork + 1] if lazy else [fork + 1, len(self.steps)]
