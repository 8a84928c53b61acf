"""Rule programs as statements: their columns, those that have a time of their own, and how far back in time rules look for what they
derive at a point, through all that they derive it from.

>>> from engine.timeline import operator
>>> a, b, c = (Atom(name, ()) for name in "abc")
>>> rules = Rule(a, (DiamondMinus(operator(0, 5), b),)), Rule(b, (BoxMinus(operator(1, 2), c),))
>>> look_back(rules, 0), look_back((*rules, Rule(c, (DiamondMinus(operator(1, 1), a),))), 0)
(14, None)
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from engine.grouping import by_key
from engine.ir.rules import (STREAM, TRIPLE, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Head, Negation, Rule, RuleSet,
                             WindowFormula, atoms, nested)
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import GraphSource, Instants, Statement, StreamSource, TimedProgram
from engine.ir.strata import Known, components, heads, predicate_of
from engine.ir.terms import Constant, Variable, quote
from engine.timeline import ALWAYS, MAX

FROM, UNTIL = Variable("from"), Variable("until")


def columns(rules: RuleSet) -> tuple[Variable, ...]:
    """The columns of what rules derive: ``s p o`` of triples, ``atom a1 a2 ...`` (a predicate and its arguments) of other atoms, where
    there are any, and the times ``from`` and ``until``."""
    heads = heads_of(rules)
    named = [len(atom.terms) for atom in heads if atom.predicate != TRIPLE]
    places = ["s", "p", "o"] if any(atom.predicate == TRIPLE for atom in heads) else []
    if named:
        places += ["atom", *(f"a{number + 1}" for number in range(max(named)))]
    return (*map(Variable, places), FROM, UNTIL)


def heads_of(rules: RuleSet) -> list[Atom]:
    """The atoms of the heads of the rules that stand in the text."""
    return [atom for rule in rules.written for atom in atoms(rule.head)]


def name_of(predicate: str) -> str:
    """A predicate as a term: an IRI, or a name as a string."""
    return predicate if predicate.startswith("<") else quote(predicate)


def fits(terms: tuple[str, ...], head: Atom) -> bool:
    """Whether a head may derive an atom of its predicate with these tokens."""
    return len(terms) == len(head.terms) and all(
        isinstance(asked, Variable) or isinstance(asked, Constant) and asked.token == token for asked, token in zip(head.terms, terms))


def timed_statement(rules: RuleSet, text: str, media: str) -> Statement:
    """A program with a time of its own as a continuous query: it reads the streams and knows the graphs that it imports. `media` is the
    type of its text. Raises DiagnosticError with all that is wrong."""
    streams = [imp for imp in rules.imports if imp.profile == STREAM]
    found = []
    if not rules.written:
        found.append(Diagnostic("rule-syntax", "The program has no rule, so nothing would ever come out of it."))
    if not streams:
        found.append(Diagnostic("window-unbounded", "The program reads no stream.", rules.imports[-1].span if rules.imports else None,
                                hint="write  FROM STREAM <the stream's IRI>  before the rules"))
    if found:
        raise DiagnosticError(*found)
    return Statement(
        TimedProgram(rules, None, columns(rules)), text, dialect=media.rpartition("-")[2], output="istream", report="change",
        streams=tuple(StreamSource(imp.iri, Instants(), span=imp.span) for imp in streams),
        graphs=tuple(GraphSource(imp.iri, span=imp.span) for imp in rules.imports if imp.profile != STREAM))


def last_told_at(program: TimedProgram, last_ms: int) -> int:
    """The watermark at which a replay ends whose last event is at an instant: the program's own facts, and what a rule looks back at, are
    told of by then. Rules that feed one another may have more to tell, or go on for ever."""
    rules = program.rules
    ends = [(fact.interval.hi + 1) // 2 for fact in rules.facts if fact.interval != ALWAYS and fact.interval.hi < MAX]
    formulas = [formula for rule in rules.rules for formula in (rule.head, *rule.body)]
    reach_ms = max((sum(_lengths(formula, rules.granularity_ms)) for formula in formulas), default=0)
    last_ms = max(last_ms, *ends) if ends else last_ms
    if not rules.granularity_ms:
        return last_ms + reach_ms + program.grain_ms
    return (last_ms // program.grain_ms + 2) * program.grain_ms + reach_ms


def _lengths(formula: Formula | Head, granule_ms: int) -> Iterator[int]:
    """The distances, in ms, by which a formula looks back or ahead; of one without bound where it begins."""
    for inner in nested(formula):
        match inner:
            case DiamondMinus(distance=distance) | BoxMinus(distance=distance) | BoxPlus(distance=distance):
                yield (distance.lo if distance.hi == MAX else distance.hi + 1) // 2
            case WindowFormula(unit="time", size=size):
                yield size * granule_ms


def look_back(rules: Sequence[Rule], granularity_ms: int) -> int | None:
    """The greatest distance, in points (two to a millisecond), between a fact that these rules derive and one of the input that it
    rests on, or that must not be there; None where it has no bound."""
    makers = by_key((head, number) for number, rule in enumerate(rules) for head in heads(rule))
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
            # At an instant of which its body says that something was, it is not later than where that is true.
            said = (takewhile(lambda inner: not isinstance(inner, Negation), nested(part)) for part in rule.body)
            return 0 if any(isinstance(inner, At) and inner.instant == instant for inners in said for inner in inners) else None
        case At():
            return None
    return 0


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
