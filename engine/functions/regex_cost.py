"""How long backtracking could take on a pattern: which ones need the linear matcher."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.functions import regex_syntax as syntax
from engine.functions.regex_python import Writer

MOST_STEPS = 1e8


@dataclass(frozen=True, slots=True)
class Cost:
    """Backtracking takes at most about ``2**(bits + work) * n**degree`` steps from one start in a text of length n.

    ``2**bits * n**ways`` is in how many ways the pattern can match from one start; `work` (a logarithm too) is what counted
    repeats such as ``(a{9}){9}`` do in any case.
    """

    degree: float = 0
    ways: float = 0
    bits: float = 0
    work: float = 0

    def steps(self, length: int, anchored: bool) -> float:
        """An upper bound for a search in a text of this length."""
        if math.isinf(self.degree):
            return math.inf
        return math.pow(2.0, min(self.bits + self.work, 500)) * math.pow(max(length, 1), min(self.degree + (not anchored), 40))


def cost(node: syntax.Node, follower: syntax.Node | None = None) -> Cost:
    """The bound for a pattern that `follower` comes after. Nested repeats count as exponential although some are not."""
    match node:
        case syntax.Sequence(parts):
            return _chained([cost(part, after) for part, after in zip(parts, (*parts[1:], follower))])
        case syntax.Choice(branches):
            costs = [cost(branch, follower) for branch in branches]
            choices = 0.0 if _disjoint(branches) else math.log2(len(branches))
            return Cost(max(c.degree for c in costs), max(c.ways for c in costs), choices + max(c.bits for c in costs),
                        max(c.work for c in costs))
        case syntax.Group(body):
            return cost(body, follower)
        case syntax.Repeat(body, least, most, _):
            return _repeated(cost(body), least, most, _ends_surely(body, follower))
    return Cost()


def anchored(node: syntax.Node, flags: str) -> bool:
    """Whether a match can begin at the start of the text only."""
    while isinstance(node, (syntax.Sequence, syntax.Group)):
        node = node.body if isinstance(node, syntax.Group) else (node.parts[0] if node.parts else syntax.Dot())
    return isinstance(node, syntax.Begin) and "m" not in flags


def _chained(costs: list[Cost]) -> Cost:
    """One after the other: each is tried for every way in which those before it can match."""
    degree = ways = bits = work = 0.0
    for part in costs:
        degree, work = max(degree, ways + part.degree), max(work, part.work)
        ways, bits = ways + part.ways, bits + part.bits
    return Cost(degree, ways, bits, work)


def _repeated(body: Cost, least: int, most: int | None, ends_surely: bool) -> Cost:
    if most is None:
        if body.degree or body.bits:
            return Cost(math.inf, math.inf)
        return Cost(1, 0 if ends_surely else 1, 0, body.work + math.log2(least + 1))
    choices = 0.0 if ends_surely else math.log2(most - least + 1)
    return Cost(most * body.degree, most * body.ways, most * body.bits + choices, body.work + math.log2(max(most, 1)))


def _ends_surely(body: syntax.Node, follower: syntax.Node | None) -> bool:
    """Whether what follows a repeat of `body` cannot begin inside it, so that only one number of repeats can be right."""
    mark = _start(follower) if follower is not None else None
    if mark is None:
        return False
    if isinstance(body, syntax.Char):
        return body.char.lower() != mark
    if not isinstance(body, syntax.CharClass):
        return False
    one = Writer("is").compile(body)
    return one.match(mark) is None and one.match(mark.upper()) is None


def _disjoint(branches: tuple[syntax.Node, ...]) -> bool:
    """Whether the first character tells which branch it is."""
    starts = [_start(branch) for branch in branches]
    return None not in starts and len(set(starts)) == len(starts)


def _start(node: syntax.Node) -> str | None:
    """The one character (in lower case) with which every match begins, if it is as simple as that."""
    while isinstance(node, (syntax.Sequence, syntax.Group)):
        if isinstance(node, syntax.Sequence) and not node.parts:
            return None
        node = node.body if isinstance(node, syntax.Group) else node.parts[0]
    return node.char.lower() if isinstance(node, syntax.Char) else None
