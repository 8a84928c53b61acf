"""What the rules of a LARS program must keep together: strata, and what tuple windows count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.ir.rules import TRIPLE, Atom, Rule
from engine.ir.spans import Diagnostic
from engine.ir.strata import Predicate, heads, predicate_of, unstratified
from grammar.lars.timeline import Window


def problems(rules: Sequence[Rule], tuple_windows: Sequence[tuple[Atom, Window]]) -> Iterator[Diagnostic]:
    """What is wrong: a cycle through negation, and tuple windows over derived atoms, which may have no model (Laser, section 2.1)."""
    found = unstratified(rules)
    if found is not None:
        yield found
    derived = {predicate for rule in rules for predicate in heads(rule)} if tuple_windows else set()
    for atom, window in tuple_windows:
        if _meets(predicate_of(atom), derived):
            written = atom.span.text if atom.span is not None else atom.predicate
            yield Diagnostic("rules-unsafe", f"A tuple window counts what the stream brings, and {written} is derived.", window.span,
                             hint="take a time window, such as [10 sec]")


def _meets(asked: Predicate, derived: set[Predicate]) -> bool:
    """Whether rules derive what is asked for; a variable property meets all triples."""
    if asked in derived or asked[0] == TRIPLE and (TRIPLE, None) in derived:
        return True
    return asked == (TRIPLE, None) and any(predicate == TRIPLE for predicate, _ in derived)
