"""Bags of answers and when two of them are the same: up to order and the names of blank nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Row = Mapping[str, str]
Colours = dict[str, str]


def same_bag(left: Iterable[Row], right: Iterable[Row]) -> bool:
    """Whether two bags of rows (variable name -> token) are equal up to a renaming of blank nodes."""
    first, second = [dict(row) for row in left], [dict(row) for row in right]
    return len(first) == len(second) and _match(first, {}, second, {})


def ordered_alike(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Whether two sequences of rows are equal in order, up to a renaming of blank nodes."""
    return same_bag(*([{**row, "#": str(i)} for i, row in enumerate(rows)] for rows in (left, right)))


def _match(left: list[dict[str, str]], ours: Colours, right: list[dict[str, str]], theirs: Colours) -> bool:
    """Colour refinement; where classes of several nodes remain, one node is singled out and paired with each candidate."""
    ours, theirs = _refine(left, ours), _refine(right, theirs)
    if _picture(left, ours) != _picture(right, theirs):
        return False
    classes = Counter(ours.values())
    if all(size == 1 for size in classes.values()):
        return True
    colour = min((c for c, size in classes.items() if size > 1), key=lambda c: (classes[c], c))
    chosen = min(node for node, c in ours.items() if c == colour)
    return any(_match(left, {**ours, chosen: "chosen " + colour}, right, {**theirs, node: "chosen " + colour})
               for node in sorted(node for node, c in theirs.items() if c == colour))


def _refine(rows: list[dict[str, str]], colours: Colours) -> Colours:
    """Give each blank node a colour that tells how it occurs, until no further class is split."""
    colours = {token: colours.get(token, "") for row in rows for token in row.values() if token.startswith("_:")}
    while True:
        occurrences: dict[str, list[str]] = {node: [] for node in colours}
        for row in rows:
            for node in {token for token in row.values() if token.startswith("_:")}:
                occurrences[node].append(_shown({k: "*" if t == node else colours.get(t, t) for k, t in row.items()}))
        names = {key: str(i) for i, key in enumerate(sorted({(colours[n], *sorted(occurrences[n])) for n in colours}))}
        refined = {n: f"_:{names[(colours[n], *sorted(occurrences[n]))]}" for n in colours}
        if len(set(refined.values())) == len(set(colours.values())):
            return refined
        colours = refined


def _picture(rows: list[dict[str, str]], colours: Colours) -> Counter[str]:
    return Counter(_shown({name: colours.get(token, token) for name, token in row.items()}) for row in rows)


def _shown(row: Row) -> str:
    return " ".join(f"?{name}={row[name]}" for name in sorted(row))
