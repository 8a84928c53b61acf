"""Rule programs as statements: their columns, and those that have a time of their own."""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.profiles import STREAM
from engine.ir.quoting import quote
from engine.ir.rules import TRIPLE, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Head, Negation, RuleSet, WindowFormula, atoms
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import GraphSource, Instants, Statement, StreamSource, TimedProgram
from engine.ir.terms import Constant, Variable
from engine.timeline import ALWAYS, MAX, Interval

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
    match formula:
        case DiamondMinus(distance=distance) | BoxMinus(distance=distance) | BoxPlus(distance=distance):
            yield _end(distance)
            yield from _lengths(formula.body, granule_ms)
        case WindowFormula(unit="time", size=size):
            yield size * granule_ms
            yield from _lengths(formula.body, granule_ms)
        case WindowFormula() | At() | Negation():
            yield from _lengths(formula.body, granule_ms)


def _end(distance: Interval) -> int:
    return (distance.lo if distance.hi == MAX else distance.hi + 1) // 2
