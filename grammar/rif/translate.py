"""Abstract syntax -> rules (engine/ir/rules.py): Or and a head's And are split, Exists renames, external functions become Assign,
and each body is put in a safe order.

What RIF-Core does not allow is reported here, for both concrete syntaxes: what other dialects have by name (RIF-Core section 2),
variables that nothing declares, rules that are not safe (section 6.1).
"""

from collections.abc import Iterator, Mapping, Set
from difflib import get_close_matches
from itertools import product

from engine.ir import lists
from engine.ir.builtins import BUILTINS, IDENTICAL, IRI_STRING, MAKE_LIST
from engine.ir.expressions import Call, Expression, variables_of
from engine.ir.rules import TRIPLE, Assign, Atom, Fact, Formula as BodyFormula, Rule, Test
from engine.ir.spans import Span
from engine.ir.terms import RDF_TYPE, RDFS, Constant, Term as IrTerm, Variable
from engine.timeline import ALWAYS
from grammar.binding import Equality, assigned, bind
from grammar.rif.syntax import Apply, Clause, Connective, Const, External, Foreign, Formula, Frame, ListTerm, Pair, Quantified, Term, Var
from grammar.rule_text import Report

SUBCLASS = f"<{RDFS}subClassOf>"
MOST_CONJUNCTS = 20_000
_PAIRS = {"=": "Equality", "#": "Membership ('#')", "##": "Subclass ('##')"}

Conjunct = Atom | Equality | Test | Assign      # a Test is an external predicate
Alternatives = list[tuple[Conjunct, ...]]
Scope = Mapping[str, Variable]


class Translator:
    def __init__(self, report: Report) -> None:
        self.report = report
        self._places: dict[Variable, Span] = {}     # where each stands first
        self._written: dict[Variable, str] = {}
        self._fresh = 0
        self._assigned: list[Conjunct] = []

    def clause(self, clause: Clause, window_ms: int | None) -> Iterator[Rule | Fact]:
        """The rules that a clause means, or the facts."""
        noted = len(self.report.diagnostics)
        scope = self._declare({}, clause.variables)
        head, calls = self._head(clause.head, scope)
        alternatives: Alternatives = [()] if clause.body is None else self.body(clause.body, scope)
        if self._too_many(len(head), sum(map(len, alternatives)), clause.span):
            return
        for conjuncts in alternatives:
            body = self._safe((*conjuncts, *calls), head)
            if len(self.report.diagnostics) > noted:
                return
            for atom in head:
                if not body and all(isinstance(t, Constant) for t in atom.terms):
                    yield Fact(atom, ALWAYS)
                else:
                    yield Rule(atom, _without_idle(body, atom, calls), clause.name, window_ms, span=clause.span)

    def _safe(self, conjuncts: tuple[Conjunct, ...], head: tuple[Atom, ...]) -> tuple[BodyFormula, ...]:
        body, unbound = _in_order(conjuncts, {t for atom in head for t in atom.terms if isinstance(t, Variable)})
        # The variables of calls in the head and in the body, by the names that the text has for them.
        for variable in sorted(unbound & self._written.keys(), key=self._place):
            name, span = self._written[variable], self._places[variable]
            if not any(d.span == span and d.code == "rules-unsafe" for d in self.report.diagnostics):
                what = "no atom or frame of the body holds it, and no bound term is equal to it"
                self.report.error(f"Nothing binds ?{name}: {what}.", span, code="rules-unsafe",
                                  hint=f"let an atom or frame in each alternative of the body hold ?{name}")
        return body

    def _place(self, variable: Variable) -> tuple[int, str]:
        span = self._places.get(variable)
        return (span.start if span else 0), variable.name

    def _head(self, formula: Formula, scope: Scope) -> tuple[tuple[Atom, ...], tuple[Conjunct, ...]]:
        """The atoms of a head, and the calls whose values stand in them."""
        self._assigned = []
        parts = formula.parts if isinstance(formula, Connective) and formula.word == "And" else (formula,)
        atoms = tuple(atom for part in parts for atom in self._head_atoms(part, scope))
        return atoms, tuple(self._assigned)

    def _head_atoms(self, formula: Formula, scope: Scope) -> list[Atom]:
        match formula:
            case Apply() | Frame():
                return self._relations(formula, scope)
            case Pair(operator=operator, left=left, right=right):
                member = operator == "#" and right.span.text[:1] not in "<"
                self._not_core(f"{_PAIRS[operator]} in a head", formula.span,
                               f"write {left.span.text}[rdf:type -> {right.span.text}]" if member else None)
            case External():
                self._not_core("An external atom in a head", formula.span)
            case Connective(word=word):
                self._not_core(f"{word} in a head", formula.span)
            case Quantified():
                self._not_core("Exists in a head", formula.span)
            case Foreign():
                self._not_core(formula.what, formula.span)
        return []

    def body(self, formula: Formula, scope: Scope) -> Alternatives:
        """The conjunctions of which one must hold: the disjunctive normal form."""
        match formula:
            case Connective("And", parts):
                found = [self.body(part, scope) for part in parts]
                count = 1
                for alternatives in found:
                    count = min(count * len(alternatives), MOST_CONJUNCTS)      # a number of many digits is slow to multiply
                if self._too_many(count, sum(max(map(len, alternatives), default=0) for alternatives in found), formula.span):
                    return []
                return [tuple(conjunct for conjuncts in chosen for conjunct in conjuncts) for chosen in product(*found)]
            case Connective(parts=parts):
                return [conjuncts for part in parts for conjuncts in self.body(part, scope)]
            case Quantified(variables, inner):
                return self.body(inner, self._declare(scope, variables))
            case Foreign():
                self._not_core(formula.what, formula.span)
                return []
        self._assigned = []
        own = self._conjuncts(formula, scope)
        return [(*self._assigned, *own)]

    def _conjuncts(self, formula: Formula, scope: Scope) -> tuple[Conjunct, ...]:
        match formula:
            case Apply() | Frame():
                return tuple(self._relations(formula, scope))
            case Pair("=", left, right):
                return (Equality(self._expression(left, scope), self._expression(right, scope)),)
            case Pair(operator, left, right):
                link = Constant(RDF_TYPE if operator == "#" else SUBCLASS)
                return (Atom(TRIPLE, (self._term(left, scope), link, self._term(right, scope)), span=formula.span),)
            case External(call):
                found = self._external(call, "predicate", scope, formula.span)
                return (Test(found),) if found is not None else ()
        raise TypeError(f"no conjunct: {formula}")

    def _relations(self, formula: Apply | Frame, scope: Scope) -> list[Atom]:
        if isinstance(formula, Frame):
            subject = self._term(formula.subject, scope)
            return [Atom(TRIPLE, (subject, self._term(slot, scope), self._term(value, scope)), span=formula.span)
                    for slot, value in formula.slots]
        predicate = self._symbol(formula, "A variable as predicate")
        terms = tuple(self._term(arg, scope) for arg in formula.args)
        return [Atom(predicate, terms, span=formula.span)] if predicate else []

    def _symbol(self, call: Apply, higher_order: str) -> str | None:
        """The token of what is applied."""
        if call.names:
            self._not_core("An argument by name", call.span, "name them by place: p(?x ?y), or write a frame: ?s[ex:p -> ?x]")
        if isinstance(call.op, Const) and call.op.token.startswith("<"):
            return call.op.token
        if isinstance(call.op, Const):
            self.report.error("A literal is no predicate.", call.op.span)
        else:
            self._not_core(higher_order, call.op.span)
        return None

    def _term(self, term: Term, scope: Scope) -> IrTerm:
        """A term of an atom; the value of a call is assigned to a variable of its own."""
        found = self._expression(term, scope)
        if isinstance(found, (Variable, Constant)):
            return found
        self._fresh += 1
        variable = Variable(f".{self._fresh}")
        self._assigned.append(Assign(variable, found))
        return variable

    def _expression(self, term: Term, scope: Scope) -> Expression:
        match term:
            case Var(name):
                return self._variable(name, term.span, scope)
            case Const(token):
                return Constant(token)
            case ListTerm():
                return self._list(term, scope)
            case External(call):
                found = self._external(call, "function", scope, term.span)
                return found if found is not None else Constant('""')
            case Apply():
                self._not_core("A function term", term.span, "call a built-in: External(func:...(...))")
        return Constant('""')

    def _variable(self, name: str, span: Span, scope: Scope) -> Variable:
        if name not in scope:
            self.report.error(f"?{name} is free: no Forall and no Exists declares it.", span, hint=f"Forall ?{name} ( ... )")
            return Variable(name)
        self._places.setdefault(scope[name], span)
        return scope[name]

    def _list(self, term: ListTerm, scope: Scope) -> Expression:
        if term.rest is not None:
            self._not_core("A list with a rest ('|')", term.span)
        if any(isinstance(member, Var) for member in term.members):
            self._not_core("A list with variables", term.span, "External(func:make-list(?x ?y))")
            return Constant(lists.write(()))
        members = [self._expression(member, scope) for member in term.members]
        if all(isinstance(member, Constant) for member in members):
            return Constant(lists.write(member.token for member in members if isinstance(member, Constant)))
        return Call(MAKE_LIST, tuple(members), span=term.span)

    def _external(self, call: Apply, kind: str, scope: Scope, span: Span) -> Call | None:
        """A call of a built-in, which must be of this kind."""
        symbol = self._symbol(call, "A variable as built-in")
        args = tuple(self._expression(arg, scope) for arg in call.args)
        builtin = BUILTINS.get(symbol or "")
        if symbol is None:
            return None
        if builtin is None:
            close = get_close_matches(symbol, list(BUILTINS), 1, 0.8)
            self.report.error(f"There is no built-in {symbol}.", call.op.span,
                              hint=f"did you mean {BUILTINS[close[0]].short}?" if close else None)
            return None
        if builtin.kind != kind:
            self.report.error(f"{builtin.short} is a {builtin.kind}, here stands a {kind}.", span)
        elif len(args) < builtin.least or (builtin.most is not None and len(args) > builtin.most):
            self.report.error(f"{builtin.short} takes {_count(builtin.least, builtin.most)}, found {len(args)}.", span)
        else:
            return Call(symbol, args, span=span)
        return None

    def _declare(self, scope: Scope, variables: tuple[Var, ...]) -> Scope:
        """The scope with these variables; one whose name stands for another variable of the rule gets a name of its own."""
        inner = dict(scope)
        for var in variables:
            name = var.name
            while Variable(name) in self._written:
                self._fresh += 1
                name = f".{var.name}.{self._fresh}"
            inner[var.name] = Variable(name)
            self._written[inner[var.name]] = var.name
        return inner

    def _too_many(self, copies: int, length: int, span: Span) -> bool:
        """Whether so many copies of what has so many conjuncts are too much."""
        many = copies > 1 and copies * length > MOST_CONJUNCTS
        if many:
            self.report.error(f"Each head and each alternative of its own, this makes more than {MOST_CONJUNCTS} conjuncts.", span,
                              code="body-too-large", hint="give a part of it a predicate of its own")
        return many

    def _not_core(self, what: str, span: Span, hint: str | None = None) -> None:
        self.report.error(f"{what} is not in RIF-Core.", span, code="rif-feature-not-core", hint=hint)


def _in_order(conjuncts: tuple[Conjunct, ...], asked: Set[Variable]) -> tuple[tuple[BodyFormula, ...], Set[Variable]]:
    """A conjunction in a safe order (section 6.1): the atoms in the order of the text, then everything else as soon as its variables are
    bound (an Assign binds a new variable); and which of their variables, and of those that are `asked` for, nothing binds.

    An atom or frame binds its variables. ``=`` binds a variable to the other side, ``pred:iri-string`` one of its arguments to the other
    (the binding patterns of DTB); all other built-ins need all their arguments.
    """
    atoms = [c for c in conjuncts if isinstance(c, Atom)]
    bound = {v for atom in atoms for v in _variables(atom)}
    found = bind({place: c for place, c in enumerate(conjuncts) if not isinstance(c, Atom)}, _variables, _ready, bound)
    body = (*atoms, *(formula for made in found.values() for formula in made))
    return body, {*asked, *(v for conjunct in conjuncts for v in _variables(conjunct))} - bound


def _variables(conjunct: Conjunct) -> Iterator[Variable]:
    """The variables of a conjunct, left to right as far as it is a call."""
    match conjunct:
        case Atom(terms=terms):
            yield from (t for t in terms if isinstance(t, Variable))
        case Equality():
            yield from sorted(conjunct.variables)
        case Test(call):
            yield from sorted(variables_of(call))
        case Assign(variable, expression):
            yield variable
            yield from sorted(variables_of(expression))


def _ready(conjunct: Conjunct, bound: Set[Variable]) -> tuple[BodyFormula, ...] | None:
    """What a conjunct becomes where these variables are bound; None where it has to wait."""
    match conjunct:
        case Assign(left, right) | Equality(left, right):
            if variables_of(left) | variables_of(right) <= bound:
                # With an IRI SPARQL's = is the same, and known to SQL.
                iri = any(isinstance(side, Constant) and side.token[0] == "<" for side in (left, right))
                return (Test(Call("=" if iri else IDENTICAL, (left, right))),)
            return assigned(left, right, bound)
        case Test(call) if variables_of(call) <= bound:
            return (conjunct,)
        case Test(Call(function=name, args=(first, second)) as call) if name == IRI_STRING:
            return _iri_string(call, first, second, bound)
        case Atom():
            return (conjunct,)
    return None


def _iri_string(call: Call, first: Expression, second: Expression, bound: Set[Variable]) -> tuple[BodyFormula, ...] | None:
    for side, other, function in ((first, second, "IRI"), (second, first, "STR")):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return Assign(side, Call(function, (other,), span=call.span)), Test(call)
    return None


def _without_idle(body: tuple[BodyFormula, ...], head: Atom, calls: tuple[Conjunct, ...]) -> tuple[BodyFormula, ...]:
    """A body without the calls for other atoms of the same head."""
    idle = {c.variable for c in calls if isinstance(c, Assign)}.difference(head.terms)
    return tuple(f for f in body if not (isinstance(f, Assign) and f.variable in idle)) if idle else body


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} arguments or more"
    return f"{least} argument{'s' * (least != 1)}" if least == most else f"{least} to {most} arguments"
