"""How far back in time rules look for what they derive at a point, through all that they derive it from.

>>> from engine.ir.rules import Atom
>>> from engine.timeline import operator
>>> a, b, c = (Atom(name, ()) for name in "abc")
>>> rules = Rule(a, (DiamondMinus(operator(0, 5), b),)), Rule(b, (BoxMinus(operator(1, 2), c),))
>>> look_back(rules, 0), look_back((*rules, Rule(c, (DiamondMinus(operator(1, 1), a),))), 0)
(14, None)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.ir.components import components
from engine.ir.rules import At, BoxMinus, BoxPlus, DiamondMinus, Formula, Negation, Rule, WindowFormula, atoms
from engine.ir.statement import TimedProgram
from engine.ir.strata import Known, Predicate, heads, predicate_of
from engine.ir.terms import Variable
from engine.timeline import MAX


def look_back(rules: Sequence[Rule], granularity_ms: int) -> int | None:
    """The greatest distance, in points (two to a millisecond), between a fact that these rules derive and one of the input that it
    rests on, or that must not be there; None where it has no bound."""
    makers: dict[Predicate, set[int]] = {}
    for number, rule in enumerate(rules):
        for head in heads(rule):
            makers.setdefault(head, set()).add(number)
    known = Known(makers)
    steps: dict[int, list[tuple[int | None, set[int]]]] = {}
    for number, rule in enumerate(rules):
        ahead = _ahead(rule)
        steps[number] = [(_sum(ahead, _length(part, granularity_ms), 2 * (rule.window_ms or 0)),
                          {maker for atom in atoms(part) for need in known.meeting(predicate_of(atom)) for maker in makers[need]})
                         for part in rule.body] or [(ahead, set())]
    reach: dict[int, int | None] = {}
    for group in components({number: sorted(set().union(*(needs for _, needs in parts))) for number, parts in steps.items()}):
        inside = set(group)
        lengths = [_sum(length, _greatest([0, *(reach[need] for need in needs - inside)])) for number in group
                   for length, needs in steps[number]]
        turns = any(length != 0 and needs & inside for number in group for length, needs in steps[number])
        reach |= dict.fromkeys(group, None if turns else _greatest(lengths))
    return _greatest(reach.values())


def needed_since(program: TimedProgram, begin_ms: int) -> int | None:
    """The time in ms before which no item counts for what a program tells to begin at `begin_ms`; None where all count."""
    back = look_back(program.rules.rules, program.rules.granularity_ms)
    return None if back is None else begin_ms - back // 2 - 2 * program.grain_ms


def _greatest(lengths: Iterable[int | None]) -> int | None:
    found = list(lengths)
    return None if None in found else max((length for length in found if length is not None), default=0)


def _sum(*lengths: int | None) -> int | None:
    return None if None in lengths else sum(length for length in lengths if length is not None)


def _ahead(rule: Rule) -> int | None:
    """How long before its head a body may be true."""
    match rule.head:
        case BoxPlus(distance=distance):
            return None if distance.hi == MAX else distance.hi + 1
        case At(instant=Variable() as instant):
            return 0 if any(instant in _instants(part) for part in rule.body) else None
        case At():
            return None
    return 0


def _instants(formula: Formula) -> set[object]:
    """The instants at which a formula says that something was: not later than where it is true."""
    match formula:
        case At(instant=instant, body=body):
            return {instant, *_instants(body)}
        case DiamondMinus(body=body) | BoxMinus(body=body) | WindowFormula(body=body):
            return _instants(body)
    return set()


def _length(formula: Formula, granularity_ms: int) -> int | None:
    """How far back a formula looks."""
    match formula:
        case WindowFormula(unit="time", size=size):
            return 2 * (size + 1) * granularity_ms
        case WindowFormula():
            return None
        case DiamondMinus(distance=distance, body=body) | BoxMinus(distance=distance, body=body):
            return None if distance.hi == MAX else _sum(distance.hi + distance.hi % 2, _length(body, granularity_ms))
        case At(body=body) | Negation(body=body):
            return _length(body, granularity_ms)
    return 0
