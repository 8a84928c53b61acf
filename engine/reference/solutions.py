"""Solution mappings and the operations of SPARQL 1.1 section 18.5 on bags of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

Row = dict[str, str]
Bag = list[Row]


def compatible(left: Row, right: Row) -> bool:
    """Whether two solutions agree on every variable that both bind."""
    if len(right) < len(left):
        left, right = right, left
    return all(right.get(name, token) == token for name, token in left.items())


def join(left: Bag, right: Bag) -> Bag:
    """Join(left, right)."""
    partners = _partners(left, right)
    return [{**a, **b} for a in left for b in partners(a)]


def left_join(left: Bag, right: Bag, condition: Callable[[Row], bool]) -> Bag:
    """LeftJoin(left, right, condition): the condition sees the merged row; a row without such a partner stays as it is."""
    partners = _partners(left, right)
    result: Bag = []
    for a in left:
        merged = [m for m in ({**a, **b} for b in partners(a)) if condition(m)]
        result += merged or [a]
    return result


def minus(left: Bag, right: Bag) -> Bag:
    """Minus(left, right): rows without a compatible partner that shares a variable with them."""
    partners = _partners(left, right)
    return [a for a in left if all(a.keys().isdisjoint(b) for b in partners(a))]


def distinct(bag: Bag) -> Bag:
    """The first of each set of equal rows, order kept."""
    return list({frozenset(row.items()): row for row in reversed(bag)}.values())[::-1]


def _partners(left: Bag, right: Bag) -> Callable[[Row], Iterator[Row]]:
    """From a row of `left` to its compatible rows of `right`, in order; hashed on what every row of both sides binds."""
    keys = sorted(_always_bound(left) & _always_bound(right))
    index: dict[tuple[str, ...], Bag] = defaultdict(list)
    for row in right:
        index[tuple(row[k] for k in keys)].append(row)

    def partners(row: Row) -> Iterator[Row]:
        return (b for b in index.get(tuple(row[k] for k in keys), ()) if compatible(row, b))

    return partners


def _always_bound(bag: Bag) -> set[str]:
    return set.intersection(*(set(row) for row in bag)) if bag else set()
