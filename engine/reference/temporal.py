"""Rules over facts with intervals, naively: the oracle of every rule language (docs/architecture.md, "Rules and entailment")."""

from __future__ import annotations

from collections.abc import Iterable

from engine.functions.expressions import Context
from engine.ir.rules import Fact, RuleSet
from engine.reference.granules import evaluate_granules
from engine.reference.intervals import evaluate_intervals
from engine.reference.model import Model

__all__ = ["Model", "evaluate"]


def evaluate(program: RuleSet, facts: Iterable[Fact] = (), until_ms: int | None = None, context: Context | None = None) -> Model:
    """The least model of a program and the facts of its input: what holds when, up to the instant `until_ms`.

    Programs with a granularity are LARS (granules.py) and need `until_ms`, as do those that reach into the future again and again;
    the others are dense time (intervals.py). Raises strata.Unstratified, and ValueError for a rule that is not safe.
    """
    context = context or Context(until_ms or 0)
    if not program.granularity_ms:
        return evaluate_intervals(program, facts, until_ms, context)
    if until_ms is None:
        raise ValueError("a program with a granularity is evaluated up to an instant")
    return evaluate_granules(program, facts, until_ms, context)
