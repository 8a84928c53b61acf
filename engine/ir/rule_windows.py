"""Rules with a Window of their own in a query (Streaming RIF-Core): they see the streams that the query reads through it, whatever
windows the query's patterns have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.ir.rules import RuleSet
from engine.ir.stages import divide
from engine.ir.statement import Statement, StreamSource, TimeWindow


def with_rule_windows(statement: Statement, rules: Mapping[str, RuleSet]) -> Statement:
    """The statement with a window more on each of its streams for each Window of the rules that it uses. These close at every evaluation
    time, and add none. Where some rules have a time of their own they see the whole streams: a window that misses no event then makes
    that there is an evaluation behind each."""
    used = [rules[source.name] for source in statement.rules if source.name in rules]
    timed = divide(used).is_timed
    lengths = (_longest_step(statement),) if timed else rule_windows(used)
    if not lengths and not statement.rule_windows:
        return statement
    steps = [s.window.step_ms for s in statement.streams if isinstance(s.window, TimeWindow)]
    step = statement.compute_every_ms or math.gcd(*steps) or 1
    windows = tuple(StreamSource(source.stream, TimeWindow(length, step), source.name, source.span)
                    for length in lengths for source in statement.streams)
    return replace(statement, timed_rules=timed, rule_windows=windows)


def _longest_step(statement: Statement) -> int:
    steps = [s.window.step_ms for s in statement.streams if isinstance(s.window, TimeWindow)]
    return statement.compute_every_ms or max(steps, default=1)


def has_steps(statement: Statement) -> bool:
    """Whether evaluation times are those of a clock, and not of the items that come."""
    return bool(statement.compute_every_ms) or any(isinstance(source.window, TimeWindow) for source in statement.streams)


def rule_windows(rule_sets: Iterable[RuleSet]) -> tuple[int, ...]:
    """The lengths of the windows that rules have, in ms."""
    return tuple(sorted({rule.window_ms for rules in rule_sets for rule in rules.rules if rule.window_ms is not None}))
