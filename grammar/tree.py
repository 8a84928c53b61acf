"""The parse tree: what a machine makes of a text. Every part knows its place in the decoded text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A terminal as written; `kind` is its name in `Plan.leaves`."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A composite by its name in the grammar; `parts` are its named parts, `items` the results without a name, in order."""

    name: str
    start: int
    end: int
    parts: Mapping[str, Any]
    items: tuple[Any, ...] = ()

    def get(self, part: str) -> Any:
        """The named part; None where the text has none."""
        return self.parts.get(part)

    def all(self, part: str) -> list[Any]:
        """The named part as a list, empty where the text has none."""
        return self.parts.get(part) or []
