"""What the passes may know beside the statement: the rules in force and the background facts."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.rules import RuleSet
from engine.records import Triple


@dataclass(frozen=True, slots=True)
class Context:
    """`rules` is closed: every fact that it derives, it derives in one step from one fact. `background` is the closure of the
    statement's static graphs; `asserted` those of them that the default graph shows."""

    rules: RuleSet | None = None
    background: frozenset[Triple] = frozenset()
