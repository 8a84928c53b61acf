"""Windows of a query besides those of its patterns: the functions that ask for their times, and rules with a Window of their own.

TIMESTAMP(?s, ?p, ?o), TIMESTAMP(?item), WINDOW_OPEN(<w>) and WINDOW_CLOSE(<w>) are looked up in what the query reads, not computed from
their arguments alone. Rules with a Window of their own (Streaming RIF-Core) see the streams that the query reads through it, whatever
windows the query's patterns have.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.ir import expressions as ex
from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.stages import divide
from engine.ir.statement import Statement, StreamSource, TimeWindow
from engine.ir.terms import Constant, Variable

WINDOW_FUNCTIONS = ("WINDOW_OPEN", "WINDOW_CLOSE")
TIME_FUNCTIONS = ("TIMESTAMP", *WINDOW_FUNCTIONS)


def time_calls(expression: ex.Expression) -> Iterator[ex.Call]:
    """The time functions that an expression calls, innermost first; those inside EXISTS not included."""
    return (part for part in ex.walk(expression) if isinstance(part, ex.Call) and part.function in TIME_FUNCTIONS)


def window_names(streams: Sequence[StreamSource]) -> tuple[tuple[str, int], ...]:
    """What WINDOW_OPEN and WINDOW_CLOSE may name, with the window's index: named windows by name, others by their stream's IRI."""
    found: dict[str, int] = {}
    for named in (True, False):
        for index, source in enumerate(streams):
            if (source.name is not None) == named:
                found.setdefault(f"<{source.name or source.stream}>", index)
    return tuple(found.items())


def window_argument(call: ex.Call, streams: Sequence[StreamSource]) -> Variable | Constant:
    """The window that a call asks for: its argument, or the statement's only window. Raises DiagnosticError for another one."""
    names = [name for name, _ in window_names(streams)]
    if not call.args and len(streams) == 1:
        return Constant(names[0])
    if len(call.args) == 1:
        argument = call.args[0]
        if isinstance(argument, Variable) or isinstance(argument, Constant) and argument.token in names:
            return argument
    raise DiagnosticError(Diagnostic("query-syntax", f"{call.function} needs the name of a window of this statement.", call.span,
                                     note=f"Its windows: {', '.join(names) or 'none'}."))


def with_rule_windows(statement: Statement, rules: Mapping[str, RuleSet]) -> Statement:
    """The statement with a window more on each of its streams for each Window of the rules that it uses. These close at every evaluation
    time, and add none. Where some rules have a time of their own they see the whole streams: a window that misses no event then makes
    that there is an evaluation behind each."""
    used = [rules[source.name] for source in statement.rules if source.name in rules]
    timed = divide(used).is_timed
    steps = [s.window.step_ms for s in statement.streams if isinstance(s.window, TimeWindow)]
    lengths = (statement.compute_every_ms or max(steps, default=1),) if timed else rule_windows(used)
    if not lengths and not statement.rule_windows:
        return statement
    step = statement.compute_every_ms or math.gcd(*steps) or 1
    windows = tuple(StreamSource(source.stream, TimeWindow(length, step), source.name, span=source.span)
                    for length in lengths for source in statement.streams)
    return replace(statement, timed_rules=timed, rule_windows=windows)


def has_steps(statement: Statement) -> bool:
    """Whether evaluation times are those of a clock, and not of the items that come."""
    return bool(statement.compute_every_ms) or any(isinstance(source.window, TimeWindow) for source in statement.streams)


def rule_windows(rule_sets: Iterable[RuleSet]) -> tuple[int, ...]:
    """The lengths of the windows that rules have, in ms."""
    return tuple(sorted({rule.window_ms for rules in rule_sets for rule in rules.rules if rule.window_ms is not None}))
