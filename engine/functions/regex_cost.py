"""How long backtracking could take on a pattern: which ones need the linear matcher."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.functions import regex_syntax as syntax

MOST_STEPS = 1e8


@dataclass(frozen=True, slots=True)
class Cost:
    """Backtracking takes at most about ``2**bits * n**degree`` steps from one start in a text of length n."""

    degree: float = 0
    bits: float = 0

    def steps(self, length: int, anchored: bool) -> float:
        """An upper bound for a search in a text of this length."""
        if math.isinf(self.degree):
            return math.inf
        return math.pow(2.0, min(self.bits, 500)) * math.pow(max(length, 1), min(self.degree + (not anchored), 40))


def cost(node: syntax.Node) -> Cost:
    """The bound for a pattern. Nested repeats count as exponential although some are not."""
    match node:
        case syntax.Sequence(parts):
            return _sum([cost(part) for part in parts])
        case syntax.Choice(branches):
            worst = [cost(branch) for branch in branches]
            choices = 0.0 if _disjoint(branches) else math.log2(len(branches))
            return Cost(max(c.degree for c in worst), choices + max(c.bits for c in worst))
        case syntax.Group(body):
            return cost(body)
        case syntax.Repeat(body, least, most, _):
            return _repeated(cost(body), least, most)
    return Cost()


def anchored(node: syntax.Node, flags: str) -> bool:
    """Whether a match can begin at the start of the text only."""
    while isinstance(node, (syntax.Sequence, syntax.Group)):
        node = node.body if isinstance(node, syntax.Group) else (node.parts[0] if node.parts else syntax.Dot())
    return isinstance(node, syntax.Begin) and "m" not in flags


def _repeated(body: Cost, least: int, most: int | None) -> Cost:
    steady = body == Cost()
    if most is None:
        return Cost(1) if steady else Cost(math.inf)
    return Cost(most * body.degree, most * body.bits + math.log2(most - least + 1))


def _sum(costs: list[Cost]) -> Cost:
    return Cost(sum(c.degree for c in costs), sum(c.bits for c in costs))


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
