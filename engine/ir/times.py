"""The functions that ask for time: TIMESTAMP(?s, ?p, ?o), TIMESTAMP(?item), WINDOW_OPEN(<w>), WINDOW_CLOSE(<w>).

Their value is looked up in what the query reads, not computed from their arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.ir import expressions as ex
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import StreamSource
from engine.ir.terms import Constant, Variable

WINDOW_FUNCTIONS = ("WINDOW_OPEN", "WINDOW_CLOSE")
TIME_FUNCTIONS = ("TIMESTAMP", *WINDOW_FUNCTIONS)


def time_calls(expression: ex.Expression) -> Iterator[ex.Call]:
    """The time functions that an expression calls, innermost first; those inside EXISTS not included."""
    match expression:
        case ex.Call(function=function, args=args):
            for arg in args:
                yield from time_calls(arg)
            if function in TIME_FUNCTIONS:
                yield expression
        case ex.Aggregate(expression=inner) if inner is not None:
            yield from time_calls(inner)


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
