"""Posts that reply to each other as a stream, and the closure that static/examples/discussions.rq makes of each window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.data import BEGIN_MS, Item, spread

REPLY_OF = "http://rdfs.org/sioc/ns#reply_of"
DISCUSSES = "http://example.org/discusses"
_THREADS = 5
_POST = "http://example.org/posts/"

Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Posts:
    """`size` posts, `per_second` of them a second; each replies to one of the last few in its thread, now and then to two."""

    size: int = 2_000
    per_second: int = 20
    seed: int = 1

    def items(self) -> Iterator[Item]:
        """All replies, by time."""
        for number in range(self.size):
            told = [f"<{_POST}{number}> <{REPLY_OF}> <{_POST}{other}> ." for other in self.replies_to(number)]
            if told:
                yield self.told_ms(number), told

    def told_ms(self, number: int) -> int:
        """When a post is made."""
        return BEGIN_MS + number * 1000 // self.per_second

    def replies_to(self, number: int) -> list[int]:
        """The posts that it replies to."""
        mixed = spread(number, self.seed)
        steps = (1 + mixed % 4, 5 + mixed // 4 % 4)[:1 + (mixed // 16 % 8 == 0)]
        return [number - step * _THREADS for step in steps if number >= step * _THREADS]

    def expected(self, range_ms: int = 10_000, step_ms: int = 1_000) -> dict[int, Pairs]:
        """What is discussed with what at each evaluation time (ms), while some reply is in the window."""
        last = self.told_ms(self.size - 1)
        return {at: self._closure(at - range_ms, at) for at in range(BEGIN_MS + step_ms, last + range_ms + 1, step_ms)}

    def _closure(self, from_ms: int, until_ms: int) -> Pairs:
        replies: dict[int, list[int]] = defaultdict(list)
        reached: dict[int, set[int]] = defaultdict(set)
        for number in range(self.size):     # a post replies to earlier ones: what these reach is known before
            if from_ms <= self.told_ms(number) < until_ms:
                replies[number] = self.replies_to(number)
                reached[number] = set(replies[number]).union(*(reached[other] for other in replies[number] if other in reached))
        return frozenset((f"{_POST}{post}", f"{_POST}{other}") for post, others in reached.items() for other in others)
