"""Rules in normal form (engine/rewrite/temporal.py) as plans over interval relations: for each atom that may be new, one derivation.

Strata are the strongly connected components of what depends on what, so only what is truly recursive takes rounds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from engine.ir.expressions import Expression, variables_of
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, DiamondMinus, Formula, Negation, Rule, RuleSet, Table, Test, WindowFormula,
                             atoms, is_auxiliary, rule_variables)
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.strata import Unstratified, components, endless, refused, shortest_way
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.plan import intervals as plan
from engine.timeline import MAX, Interval

INSTANT = Variable(".instant")
TYPE = Constant(RDF_TYPE)


def relation_name(predicate: str, arity: int) -> str:
    return f"{predicate}/{arity}"


class Relations:
    """Which relation has an atom: the triples of one property are a relation where no atom leaves the property open; so are those of one
    class where none leaves the class open (`not` of one class is no cycle for rules that derive another)."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        listed = [atom for rule in rules for part in (rule.head, *rule.body) for atom in atoms(part)]
        triples = [atom.terms for atom in listed if atom.predicate == TRIPLE]
        self.by_property = all(isinstance(terms[1], Constant) for terms in triples)
        self.by_class = self.by_property and all(isinstance(terms[2], Constant) for terms in triples if terms[1] == TYPE)

    def of(self, atom: Atom) -> tuple[str, tuple[Term, ...]]:
        """The relation of an atom, and its terms there."""
        if atom.predicate == TRIPLE and self.by_property:
            subject, link, object_ = atom.terms
            if self.by_class and link == TYPE and isinstance(object_, Constant):
                return relation_name(f"{TRIPLE} {RDF_TYPE} {object_.token}", 1), (subject,)
            if isinstance(link, Constant):
                return relation_name(f"{TRIPLE} {link.token}", 2), (subject, object_)
        return relation_name(atom.predicate, len(atom.terms)), atom.terms


def late_name(relation: str) -> str:
    """The relation of the atoms of another that became known late, with their instants."""
    return f".late {relation}"


def build(program: RuleSet, rules: Sequence[Rule], checks: Sequence[tuple[str, Rule]] = ()) -> plan.Program:
    """The plan of a program by its rules in normal form. Raises DiagnosticError where there is none."""
    return _Builder(program, rules).program(checks)


class _Builder:
    def __init__(self, program: RuleSet, rules: Sequence[Rule]) -> None:
        self.source = program
        self.rules = rules
        self.places = {rule: place for place, rule in reversed(list(enumerate(rules)))}
        self.granule = 2 * program.granularity_ms
        self.relations = Relations(rules)
        self.rules_of: dict[str, list[Rule]] = defaultdict(list)
        self.arity: dict[str, int] = {}
        self.windows: dict[str, plan.TupleWindow] = {}
        self.rule: Rule | None = None   # the one at hand
        self.late = {self.named(atom)[0] for rule in rules if isinstance(rule.head, At) for atom in atoms(rule.head)}
        if self.late and not self.granule:
            self.rule = next(rule for rule in rules if isinstance(rule.head, At))
            raise self.refused("a head with an instant needs a program with a granularity")

    def named(self, atom: Atom) -> tuple[str, tuple[Term, ...]]:
        """The relation of an atom and its terms there; it is then one of the program's."""
        name, terms = self.relations.of(atom)
        self.arity[name] = len(terms)
        return name, terms

    def program(self, checks: Sequence[tuple[str, Rule]]) -> plan.Program:
        needs: dict[str, list[str]] = {}
        negative: dict[tuple[str, str], Rule] = {}
        for rule in self.rules:
            self.rule = rule
            head, _ = self.named(next(atoms(rule.head)))
            asked = [name for part in rule.body for name in self.asked(part)]
            for made in (head, late_name(head)) if isinstance(rule.head, At) else (head,):
                self.rules_of[made].append(rule)
                needs.setdefault(made, []).extend(asked)
                negative |= {(made, name): rule for part in rule.body if isinstance(part, Negation) for name in self.asked(part)}
        for name in self.late:
            self.arity[late_name(name)] = self.arity[name] + 1
        for name in self.arity:
            needs.setdefault(name, [])
        groups = components(needs)
        for (made, name), rule in negative.items():
            if any(made in group and name in group for group in groups):
                raise DiagnosticError(refused(Unstratified([made, *shortest_way(name, made, needs.__getitem__)], rule)))
        strata = tuple(self.stratum(group, group[0] in needs[group[0]] or len(group) > 1) for group in groups)
        late = tuple((name, late_name(name)) for name in sorted(self.late))
        return plan.Program(strata, self.granule, self.source.start_at_ms, tuple(self.windows.values()), late, tuple(checks))

    def asked(self, part: Formula) -> list[str]:
        """The relations that a part of a body reads."""
        match part:
            case Negation(body=body):
                return self.asked(body)
            case WindowFormula(unit="tuple"):
                return [self.window(part)]
            case DiamondMinus(body=Atom() as atom) | BoxMinus(body=Atom() as atom) | WindowFormula(body=At(body=Atom() as atom)):
                name, _ = self.named(atom)
                return [name, *([late_name(name)] if name in self.late else [])]
        return [self.named(atom)[0] for atom in atoms(part)]

    def refused(self, message: str) -> DiagnosticError:
        """What no plan evaluates of the rule at hand."""
        return _at(self.rule, "unsupported-in-streaming", message)

    def window(self, formula: WindowFormula) -> str:
        """The relation of a window of tuples over one predicate."""
        atom, box = next(atoms(formula)), None
        if isinstance(formula.body, BoxMinus):
            if formula.body.distance.lo:
                raise self.refused("box in a window of tuples begins at the present point")
            box = self.whole(formula.body.distance).hi
        kind = "" if box is None else f"box {'all' if box == MAX else box} "
        own = f".last {formula.size} {kind}{relation_name(atom.predicate, len(atom.terms))}"
        self.arity[own] = len(atom.terms) + (box is None)
        self.windows.setdefault(own, plan.TupleWindow(own, atom.predicate, len(atom.terms), formula.size, box))
        return own

    def stratum(self, names: Sequence[str], recursive: bool) -> plan.Stratum:
        """The relations of a component with their derivations."""
        rules = {id(rule): rule for name in names for rule in self.rules_of[name]}
        made = []
        for name in names:
            found = [derivation for rule in self.rules_of[name] for derivation in self.derivations(rule, name, names)]
            if not recursive:
                found = [derivation for derivation in found if derivation.part != "round"]
            keep = self.boxed(name) if name in self.late else 0
            made.append(plan.Relation(name, self.arity[name], tuple(found), keep, shown=not is_auxiliary(name)))
        return plan.Stratum(tuple(made), recursive, endless(list(rules.values())))

    def derivations(self, rule: Rule, made: str, own: Sequence[str]) -> Iterator[plan.Derivation]:
        """The derivations of a rule: of what is new in the step, and for relations of the component since the last round."""
        self.rule = rule
        parts: tuple[plan.Part, ...] = ("new", "round")
        for part in parts:
            for delta, node in self.bodies(rule, part, own):
                if part == "new" or delta in own:
                    yield self.headed(rule, made, delta, part, node)
        listed = [formula for formula in rule.body if isinstance(formula, Atom)]
        if len(listed) > 1 and not any(isinstance(part, Negation) for part in rule.body) and self.again(rule, own) is None:
            name, terms = self.named(listed[0])
            others = [f for f in rule.body if f is not listed[0]]
            node = self.joined(rule, plan.Scan(name, terms, "later"), others, "later")
            yield self.headed(rule, made, name, "later", node)

    def headed(self, rule: Rule, made: str, delta: str, part: plan.Part, node: plan.Node) -> plan.Derivation:
        atom = next(atoms(rule.head))
        _, terms = self.named(atom)
        if isinstance(rule.head, At):
            late = made.startswith(".late ")
            node = plan.Place(node, rule.head.instant, late, self.kept(self.named(atom)[0]))
            terms = (*terms, rule.head.instant) if late else terms
        unbound = {t for t in terms if isinstance(t, Variable)} - set(plan.variables(node))
        if unbound:
            raise _unsafe(rule, unbound)
        return plan.Derivation(terms, node, delta, part, self.places[rule])

    def kept(self, name: str) -> int:
        """How long (in points) an operator looks back at atoms of a relation."""
        looks = [0]
        for rule in self.rules:
            for part in rule.body:
                match part:
                    case (DiamondMinus(distance=distance, body=Atom() as atom)
                          | BoxMinus(distance=distance, body=Atom() as atom)) if self.named(atom)[0] == name:
                        looks.append(distance.hi)
                    case WindowFormula(unit="time", size=size, body=At(body=Atom() as atom)) if self.named(atom)[0] == name:
                        looks.append(size * self.granule)
        return max(looks)

    def boxed(self, name: str) -> int:
        """How long (in points) a box looks back at atoms of a relation."""
        return max((part.distance.hi for rule in self.rules for part in rule.body
                    if isinstance(part, BoxMinus) and self.named(next(atoms(part)))[0] == name), default=0)

    def bodies(self, rule: Rule, part: plan.Part, own: Sequence[str]) -> Iterator[tuple[str, plan.Node]]:
        """A rule's body as plans, each with the relation of which it reads `part`; of the others it reads all."""
        match rule.body:
            case (DiamondMinus(distance=distance, body=Atom() as atom),):
                name, terms = self.named(atom)
                if isinstance(rule.head, Atom) and self.named(rule.head) == (name, terms) and distance.hi > 0:
                    yield name, plan.RunOn(plan.Shift(plan.Scan(name, terms, part, whole=True), self.whole(distance)), None, distance)
                else:
                    yield name, plan.Shift(plan.Scan(name, terms, part), self.whole(distance))
                yield from self.recalled(atom, part, INSTANT, distance)
            case (BoxMinus(distance=distance, body=Atom() as atom),):
                name, terms = self.named(atom)
                yield name, plan.Box(plan.Scan(name, terms, part, whole=True), self.whole(distance), bool(self.granule))
                if name in self.late:
                    late = plan.Scan(late_name(name), (*terms, INSTANT))
                    node = plan.Clip(plan.LateBox(plan.Scan(name, terms), late, INSTANT, self.whole(distance)))
                    yield late_name(name), node
                    if part == "round":
                        yield name, node
            case (At(instant=instant, body=Atom() as atom),):
                yield self.at(atom, part, instant, 0)
            case (WindowFormula(unit="time", size=size, body=At(instant=instant, body=Atom() as atom)),):
                yield self.at(atom, part, instant, size)
                yield from self.recalled(atom, part, instant, Interval(0, size * self.granule))
            case (WindowFormula() as window,):
                yield self.last(window, part)
            case _ if isinstance(rule.head, At):
                atom = next(atoms(rule.body[0]))
                name, terms = self.named(atom)
                yield name, plan.Scan(name, terms, part, whole=True)
            case (Atom() as atom, *rest) if any(isinstance(p, Negation) for p in rest):
                name, terms = self.named(atom)
                without = tuple(plan.Scan(*self.named(next(atoms(p)))) for p in rest)
                asked = {v for scan in without for v in plan.variables(scan)} - set(plan.variables(plan.Scan(name, terms)))
                if asked:
                    raise _unsafe(rule, asked)
                yield name, plan.AntiJoin(plan.Clip(plan.Scan(name, terms, "round" if part == "round" else "all")), without)
            case body:
                yield from self.conjunctions(rule, body, part, own)

    def at(self, atom: Atom, part: plan.Part, instant: Term, window: int) -> tuple[str, plan.Node]:
        """Rows with their instants: of a variable one for each granule, so far as these are in the step."""
        name, terms = self.named(atom)
        scan = plan.Scan(name, terms, part, whole=not self.granule)
        if isinstance(instant, Variable) and self.granule:
            return name, plan.At(plan.Clip(replace(scan, part="round" if part == "round" else "all")), instant, window)
        return name, plan.At(scan, instant, window)

    def recalled(self, atom: Atom, part: plan.Part, instant: Term, distance: Interval) -> Iterator[tuple[str, plan.Node]]:
        """What became known late."""
        name, terms = self.named(atom)
        if name in self.late:
            scan = plan.Scan(late_name(name), (*terms, instant), part)
            yield late_name(name), plan.Recall(scan, instant, self.whole(distance))

    def last(self, window: WindowFormula, part: plan.Part) -> tuple[str, plan.Node]:
        """An operator over the last atoms of the input."""
        name, terms = self.window(window), next(atoms(window)).terms
        match window.body:
            case DiamondMinus(distance=distance):
                return name, plan.Recall(plan.Scan(name, (*terms, INSTANT), part), INSTANT, self.whole(distance))
            case At(instant=instant):
                return name, plan.Recall(plan.Scan(name, (*terms, instant), part), instant, Interval(0, MAX))
        return name, plan.Scan(name, terms, part)

    def whole(self, distance: Interval) -> Interval:
        """A distance, which on a timeline of granules is one of whole granules."""
        if self.granule and any(end != MAX and end % self.granule for end in (distance.lo, distance.hi)):
            raise self.refused("the distances of a program with granules are whole granules")
        return distance

    def again(self, rule: Rule, own: Sequence[str]) -> tuple[Atom, Interval] | None:
        """An atom of a rule's body that is the rule's head moved on in time, ``q(x) <- diamond-minus[..] q(x), ...``, and the distance; the
        other atoms are not recursive."""
        if not isinstance(rule.head, Atom) or any(not isinstance(part, (Atom, Test)) for part in rule.body):
            return None
        recursive = [part for part in rule.body if isinstance(part, Atom) and self.named(part)[0] in own]
        if len(recursive) != 1 or not all(isinstance(t, Variable) for t in recursive[0].terms):
            return None
        for moving in self.rules_of[self.named(recursive[0])[0]]:
            match moving:
                case Rule(head=Atom() as moved, body=(DiamondMinus(distance=distance, body=Atom() as origin),)) if distance.hi > 0:
                    places = dict(zip(moved.terms, recursive[0].terms))
                    same = Atom(origin.predicate, tuple(places.get(term, term) for term in origin.terms))
                    if len(places) == len(moved.terms) and same == rule.head:
                        return recursive[0], distance
        return None

    def run_on(self, rule: Rule, listed: Sequence[Atom], first: int, part: plan.Part, moved: Atom, distance: Interval) -> plan.Node:
        """A conjunction whose rows go on for as long as what is beside the recursive atom holds."""
        def scan(atom: Atom) -> plan.Node:
            return plan.Scan(*self.named(atom), part if atom is listed[first] else "all", whole=atom is moved)

        beside = [atom for atom in listed if atom is not moved]
        guard = reduce(lambda one, other: plan.Join(one, other), map(scan, beside)) if beside else None
        return self.joined(rule, plan.RunOn(scan(moved), guard, distance), [f for f in rule.body if isinstance(f, Test)])

    def conjunctions(self, rule: Rule, body: Sequence[Formula], part: plan.Part, own: Sequence[str]) -> Iterator[tuple[str, plan.Node]]:
        """A conjunction for each of its atoms: that atom first."""
        listed = [formula for formula in body if isinstance(formula, Atom)]
        again = self.again(rule, own)
        for number, first in enumerate(listed):
            name, terms = self.named(first)
            if (name, terms) in map(self.named, listed[:number]):
                continue
            others = [f for f in body if f not in listed] + listed[:number] + listed[number + 1:]
            if again is None:
                yield name, self.joined(rule, plan.Scan(name, terms, part), others)
            else:
                yield name, self.run_on(rule, listed, number, part, *again)

    def joined(self, rule: Rule, node: plan.Node, waiting: Sequence[Formula], part: plan.Part = "all") -> plan.Node:
        """A node with the rest of a body: first what can be tested or computed, then an atom that shares most variables."""
        rest = list(waiting)
        while rest:
            bound = set(plan.variables(node))
            ready: Formula | None = next((f for f in rest if isinstance(f, (Test, Assign)) and variables_of(_read(f)) <= bound), None)
            if ready is None:
                tables = [f for f in rest if isinstance(f, (Atom, Table))]
                if not tables:
                    raise _unsafe(rule, {v for f in rest if isinstance(f, (Test, Assign)) for v in variables_of(_read(f))} - bound)
                ready = max(tables, key=lambda f: (len(rule_variables(f) & bound), isinstance(f, Table)))
            rest.remove(ready)
            match ready:
                case Test(condition=condition):
                    node = plan.Filter(node, condition)
                case Assign(variable=variable, expression=expression):
                    node = plan.Extend(node, variable, expression)
                case Table():
                    node = plan.Join(node, ready)
                case Atom():
                    node = plan.Join(node, plan.Scan(*self.named(ready), part))
        return node


def _read(formula: Test | Assign) -> Expression:
    return formula.condition if isinstance(formula, Test) else formula.expression


def _unsafe(rule: Rule, unbound: set[Variable]) -> DiagnosticError:
    names = ", ".join(f"?{v.name}" for v in sorted(unbound))
    return _at(rule, "rules-unsafe", f"nothing binds {names}")


def _at(rule: Rule | None, code: str, message: str) -> DiagnosticError:
    """What is wrong with a rule, at its place."""
    named = f" {rule.name}" if rule is not None and rule.name else ""
    return DiagnosticError(Diagnostic(code, f"The rule{named} cannot be evaluated: {message}.", rule.span if rule else None))
