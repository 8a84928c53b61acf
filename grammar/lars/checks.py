"""What the rules of a LARS program must keep together: strata, and what tuple windows count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.ir.rules import Atom, Rule
from engine.ir.spans import Diagnostic
from engine.ir.strata import Known, heads, predicate_of, unstratified
from grammar.lars.timeline import Window


def problems(rules: Sequence[Rule], tuple_windows: Sequence[tuple[Atom, Window]]) -> Iterator[Diagnostic]:
    """What is wrong: a cycle through negation, and tuple windows over derived atoms, which may have no model (Laser, section 2.1)."""
    found = unstratified(rules)
    if found is not None:
        yield found
    derived = Known(predicate for rule in rules for predicate in heads(rule))
    for atom, window in tuple_windows:
        if derived.meeting(predicate_of(atom)):
            written = atom.span.text if atom.span is not None else atom.predicate
            yield Diagnostic("rules-unsafe", f"A tuple window counts what the stream brings, and {written} is derived.", window.span,
                             hint="take a time window, such as [10 sec]")
