"""Random programs over interval relations, with facts and the instants between which a run is cut: dense time, and LARS on granules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from engine.functions.terms import integer
from engine.ir.expressions import Call
from engine.ir.rules import (Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Negation, Rule, RuleSet, Table,
                             Test, WindowFormula, atoms as rule_atoms)
from engine.ir.terms import Constant, Term, Variable
from engine.timeline import ALWAYS, MAX, Interval, granule, interval, operator

UNTIL = 12                      # ms, or granules
X, Y, T = Variable("x"), Variable("y"), Variable("t")
NAMES = tuple(Constant(token) for token in ("<a>", '"b\'s"', integer(3)))
SECOND = 1000


@dataclass(frozen=True)
class Scenario:
    """A program and its input; `cuts` are the instants in ms up to which steps go, beside the last."""

    program: RuleSet
    facts: tuple[Fact, ...]
    cuts: tuple[int, ...]
    until_ms: int = UNTIL


def distances(granular: bool) -> st.SearchStrategy[Interval]:
    """Distances of operators; a few without an end."""
    unit = SECOND if granular else 1

    def made(ends: tuple[int, int], first: bool, last: bool, endless: bool) -> Interval:
        low, high = sorted(ends)
        if granular or low == high:
            first = last = True
        found = operator(low * unit, high * unit, closed_start=first, closed_end=last)
        return Interval(found.lo, MAX) if endless else found

    return st.builds(made, st.tuples(st.integers(0, 3), st.integers(0, 4)), st.booleans(), st.booleans(),
                     st.sampled_from([False, False, False, False, True]))


def atoms(names: str) -> st.SearchStrategy[Atom]:
    """Atoms about ?x, or of two terms (`e`)."""
    return st.sampled_from(names).flatmap(lambda name: st.builds(
        lambda first, second: Atom(name, (first, second) if name == "e" else (first,)),
        st.sampled_from([X, X, X, NAMES[0]]), st.sampled_from([Y, X, NAMES[1]])))


def formulas(names: str, granular: bool) -> st.SearchStrategy[Formula]:
    """Positive formulas; of LARS those with windows, too."""
    of = distances(granular)
    plain = st.one_of(st.builds(DiamondMinus, of, atoms(names)), st.builds(BoxMinus, of, atoms(names)))
    if not granular:
        return st.one_of(atoms(names), plain, st.builds(DiamondMinus, of, plain), st.builds(BoxMinus, of, plain))
    at = st.builds(At, st.sampled_from([T, Constant(integer(3))]), atoms(names))
    sizes = st.integers(0, 5)
    narrow = st.builds(lambda d, body, box: (BoxMinus if box else DiamondMinus)(Interval(0, d.hi), body), of, atoms(names), st.booleans())
    tuples = st.builds(WindowFormula, st.just("tuple"), st.integers(1, 4),
                       st.one_of(atoms("pq"), st.builds(DiamondMinus, st.just(Interval(0, MAX)), atoms("pqe")),
                                 st.builds(At, st.just(T), atoms("pq"))))
    return st.one_of(atoms(names), plain, at, st.builds(WindowFormula, st.just("time"), sizes, st.one_of(narrow, at)), tuples)


def heads(name: str, bound: frozenset[Variable], granular: bool, late: bool) -> st.SearchStrategy[Head]:
    """Heads whose variables the body binds."""
    first: Term = X if X in bound else NAMES[0]
    atom = Atom(name, (first,))
    made: list[st.SearchStrategy[Head]] = [st.just(atom), st.just(atom), st.builds(BoxPlus, distances(granular).filter(
        lambda d: d.hi < MAX or not granular), st.just(atom))]
    if late:
        made += [st.just(At(Constant(integer(5)), atom))] * 2 + [st.just(At(T, atom))] * (4 * (T in bound))
    return st.one_of(made)


def rules(name: str, names: str, negated: str, granular: bool, late: bool = False) -> st.SearchStrategy[list[Rule]]:
    """One or two rules for a predicate."""
    negations = st.builds(Negation, st.one_of(st.sampled_from(negated or "p").map(lambda n: Atom(n, (X,))), st.builds(
        DiamondMinus, distances(granular), st.sampled_from(negated or "p").map(lambda n: Atom(n, (X,))))))
    seven = Table((X,), ((NAMES[0],), (NAMES[2],)))
    more: list[Formula] = [seven, Test(Call("ISIRI", (X,))), Assign(Y, Call("STR", (X,)))]
    others = st.lists(st.one_of(formulas(names, granular), formulas(names, granular), st.sampled_from(more),
                                *([negations] if negated else [])), max_size=2)
    bodies = st.tuples(st.sampled_from([n for n in names if n != "e"]).map(lambda n: Atom(n, (X,))), others)

    def with_head(drawn: tuple[tuple[Atom, list[Formula]], int]) -> st.SearchStrategy[Rule]:
        body, marked = drawn
        whole = (body[0], *body[1])
        if marked < 3 and late:     # marks, from now on, when something was
            whole = (*whole[:marked], WindowFormula("time", 3, At(T, Atom("p", (X,)))))
            return st.just(Rule(At(T, Atom(name, (X,))), whole))
        instants = frozenset({T}) if any(T in _instants(part) for part in whole) else frozenset()
        return heads(name, frozenset({X}) | instants, granular, late).map(lambda head: Rule(head, whole))

    single = formulas(names.replace("e", ""), granular).filter(lambda f: X in {t for t in _terms(f)}).map(
        lambda f: Rule(Atom(name, (X,)), (f,)))
    return st.lists(st.one_of(st.tuples(bodies, st.integers(0, 9)).flatmap(with_head), single), min_size=1, max_size=2)


def facts(granular: bool) -> st.SearchStrategy[list[Fact]]:
    """Facts with intervals or punctual ones, some that always hold."""
    def made(name: str, first: Constant, second: Constant, start: int, length: int, ends: tuple[bool, bool], always: bool) -> Fact:
        atom = Atom(name, (first, second) if name == "e" else (first,))
        if always:
            return Fact(atom, ALWAYS)
        if granular:
            return Fact(atom, Interval(granule(start, SECOND).lo, granule(start + length // 2, SECOND).hi))
        held = interval(start, start + length, closed_start=ends[0] or not length, closed_end=ends[1] or not length)
        assert held is not None
        return Fact(atom, held)

    one = st.builds(made, st.sampled_from("ppqqe"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 9),
                    st.sampled_from([0, 0, 0, 1, 3]), st.tuples(st.booleans(), st.booleans()), st.sampled_from([False] * 9 + [True]))
    return st.lists(one, min_size=4, max_size=12)


def shaped(name: str, names: str, granular: bool) -> st.SearchStrategy[tuple[Rule, ...]]:
    """Rules for a predicate of which each plan has a node that free ones seldom have. `names` are predicates that do not ask for it."""
    of = distances(granular)
    onward = of.filter(lambda d: 0 < d.hi < MAX)
    one = st.sampled_from([n for n in names if n != "e"]).map(lambda n: Atom(n, (X,)))
    head = Atom(name, (X,))
    moved = st.builds(DiamondMinus, onward, st.just(head))

    def rule(head: Head, *body: Formula) -> Rule:
        return Rule(head, body, name=f"clash {name}" if isinstance(head, Falsum) else None)

    def made(*heads_and_bodies: tuple[object, ...]) -> st.SearchStrategy[tuple[Rule, ...]]:
        return st.tuples(*(st.builds(rule, *(p if isinstance(p, st.SearchStrategy) else st.just(p) for p in parts))
                           for parts in heads_and_bodies))

    table = Table((X,), ((NAMES[0],), (NAMES[2],)))
    begun = (head, one)
    found = [
        made(begun, (head, moved)),                                                             # holds from now on
        made(begun, (head, moved, one)),                                                        # ... while something else does
        made(begun, (head, moved, one, one, Test(Call("ISIRI", (X,))))),
        made((head, one, st.builds(Negation, one), st.builds(Negation, st.builds(DiamondMinus, of, one)))),
        made((Atom(name, (NAMES[0],)), Negation(Atom("p", (NAMES[0],))))),                      # no atom: holds but for what is given
        made((head, st.builds(BoxMinus, of, one))),
        made((head, st.builds(BoxMinus, of, st.builds(DiamondMinus, of, one)))),
        made((head, st.builds(DiamondMinus, of, st.builds(BoxMinus, of, one)), one)),
        made((head, one, Atom("e", (X, Y)), Atom("e", (Y, Variable("z"))))),
        made((head, table, one), (head, Atom("e", (NAMES[0], X)), table)),
        made((head, one, Test(Call("ISIRI", (X,))))),
        made((Atom(name, (Y,)), one, Assign(Y, Call("STR", (X,))), Test(Call("!=", (X, Y))))),
        made((st.builds(BoxPlus, onward, st.just(head)), one)),
        made((Falsum(), one, one)),
    ]
    if granular:
        in_window = st.builds(WindowFormula, st.just("time"), st.integers(0, 5), st.builds(At, st.just(T), one))
        tuples = st.builds(WindowFormula, st.just("tuple"), st.integers(1, 4), st.sampled_from("pqe").map(
            lambda n: Atom(n, (X, Y) if n == "e" else (X,))).flatmap(lambda atom: st.sampled_from(
                [atom, DiamondMinus(Interval(0, MAX), atom), DiamondMinus(Interval(0, 4 * SECOND), atom), At(T, atom),
                 BoxMinus(Interval(0, MAX), atom), BoxMinus(Interval(0, 2 * SECOND), atom)])))
        late = (At(T, Atom(f"{name}1", (X,))), in_window, one)
        looked = [st.builds(DiamondMinus, of, st.just(Atom(f"{name}1", (X,)))), st.builds(BoxMinus, of, st.just(Atom(f"{name}1", (X,)))),
                  st.builds(WindowFormula, st.just("time"), st.integers(0, 5), st.just(At(T, Atom(f"{name}1", (X,)))))]
        found += [
            made(late, (head, st.one_of(looked))), made(late, (head, st.one_of(looked), one)),  # became known late, and is looked back at
            made((At(Constant(integer(5)), head), one)), made((head, At(Constant(integer(4)), Atom("p", (X,))))),
            made((head, tuples)), made((head, tuples, one)), made((head, one, st.builds(Negation, tuples.filter(
                lambda w: not isinstance(w.body, At) and "e" not in [a.predicate for a in rule_atoms(w)])))),
            made((Atom(name, (T,)), in_window)),
            made(late, (head, st.builds(BoxMinus, of, st.just(Atom(f"{name}1", (X,)))))),
        ]
    return st.sampled_from(found).flatmap(lambda chosen: chosen)


def scenarios(granular: bool) -> st.SearchStrategy[Scenario]:
    """Programs of four layers: `r` may depend on itself, `s` on `r` and on what is not there; `u` and `v` have rules of some shape."""
    unit = SECOND if granular else 1

    def made(layers: tuple[Iterable[Rule], ...], given: list[Fact], cuts: list[int], start: int | None) -> Scenario:
        program = RuleSet("random", tuple(rule for layer in layers for rule in layer), granularity_ms=SECOND if granular else 0,
                          start_at_ms=start * SECOND if granular and start is not None else None)
        return Scenario(program, tuple(given), tuple(cut * unit for cut in cuts), UNTIL * unit)

    layers = st.tuples(shaped("v", "pqrsu", granular), rules("s", "pqrs", "pqr", granular),
                       rules("r", "pqer", "pq", granular, late=granular), shaped("u", "pqrs", granular))
    return st.builds(made, layers, facts(granular), st.lists(st.integers(0, UNTIL - 1), max_size=5), st.sampled_from([0, 2, None]))


def _instants(formula: Formula) -> tuple[Term, ...]:
    if isinstance(formula, At):
        return (formula.instant,)
    return _instants(formula.body) if isinstance(formula, (WindowFormula, DiamondMinus, BoxMinus)) else ()


def _terms(formula: Formula) -> tuple[Term, ...]:
    while not isinstance(formula, Atom):
        assert isinstance(formula, (At, WindowFormula, DiamondMinus, BoxMinus))
        formula = formula.body
    return formula.terms
