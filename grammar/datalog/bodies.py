"""Bodies of Datalog rules: comparisons and arithmetic, ``X > 3``, ``Z = X + Y * 2``, with the operators and values of SPARQL; and safety:
each variable is bound by a positive atom, by ``@T`` before one, or by ``=`` with a bound side."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.ir.expressions import Call, Expression, variables_of
from engine.ir.rules import Assign, Formula, Head, Negation, Test, rule_variables
from engine.ir.spans import Span
from engine.ir.terms import Variable
from grammar.binding import Equality, assigned, bind
from grammar.datalog.reader import Reader
from grammar.rule_text import MAX_ATOMS, MAX_NESTING, Report

COMPARED = ("=", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/")
# As other languages write them.
_OTHERS = {"==": "equality is written =", "<>": "not equal is written !=", ":=": "equality is written =, and so is Z = X + 1",
           "<-": "put a space between < and a negative number"}
AGGREGATES = frozenset("count sum min max avg".split())


class BodyReader(Reader):
    """Reads bodies of at most MAX_ATOMS parts, which a language reads by `part`; and comparisons: an expression has at most MAX_NESTING
    operators and brackets."""

    _parts = 0

    def part(self) -> Any:
        raise NotImplementedError

    def separator(self) -> bool:
        """Take what stands between two parts, if it stands here."""
        return self.take(",") is not None

    def body(self) -> list[Any]:
        parts = [self.part()]
        while self.separator():
            if len(parts) == MAX_ATOMS:
                self.refuse(f"A body has more than {MAX_ATOMS} atoms and comparisons.", "derive a part of it by a rule of its own",
                            code="rule-too-long")
            parts.append(self.part())
        return parts

    def starts_comparison(self) -> bool:
        """Whether what begins here is no atom but a comparison."""
        if self.at("(") or self.token.kind in ("number", "string", "variable") or self.at("-", "+"):
            return True
        operators = (*COMPARED, *ARITHMETIC, "==", "<>", ":=")
        return (self.token.kind in ("word", "iri", "name") and self.after.kind == "mark" and self.after.text in operators)

    def comparison(self) -> Test | Equality:
        start = self.token.start
        self._parts = 0
        left = self._sum()
        if not self.at(*COMPARED):
            self.fail("an operator", _OTHERS.get(self.token.text, "a comparison has one of = != < <= > >="))
        operator = self.next().text
        right = self._sum()
        if self.at(*COMPARED, "==", "<>"):
            self.fail("',' or '.'", "compare two at a time: 1 < X, X < 3")
        span = self.span(start)
        return Equality(left, right, span) if operator == "=" else Test(Call(operator, (left, right), span=span))

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._operand))

    def _chain(self, operators: Sequence[str], operand: Callable[[], Expression]) -> Expression:
        found = operand()
        while self.at(*operators):
            found = self._call(self.next().text, found, operand())
        return found

    def _operand(self) -> Expression:
        if self.at("-", "+") and not self._signed():
            self._count()
            return Call(f"U{self.next().text}", (self._operand(),))
        if self.take("("):
            self._count()
            inner = self._sum()
            self.expect(")")
            return inner
        if not self.starts_term():
            self.fail("a variable, a constant or '('", "aggregates are not in this language" if self.at("#") else None)
        if self.token.kind in ("word", "name", "iri") and self.after.text in ("(", "{"):
            aggregate = self.token.text.lower() in AGGREGATES
            what = f"The aggregate {self.token.text}" if aggregate else f"The function {self.token.text}"
            self.refuse(f"{what} is not in this language.", None if aggregate else "values are made by + - * / only")
        return self.term()

    def _call(self, function: str, *args: Expression) -> Call:
        self._count()
        return Call(function, args)

    def _count(self) -> None:
        self._parts += 1
        if self._parts > MAX_NESTING:
            self.refuse(f"An expression has more than {MAX_NESTING} operators and brackets.",
                        "give a part of it a variable of its own: Z = X + 1", code="nesting-too-deep")


def resolved(parts: Sequence[Formula | Equality]) -> tuple[tuple[Formula, ...], frozenset[Variable]]:
    """A body in its order, each equality a test or an assignment; and the variables that it binds. The first equality, in the order of the
    text, that finds one side bound and the other a variable that is not assigns it."""
    bound = {v for part in parts if not isinstance(part, (Equality, Negation, Test)) for v in rule_variables(part)}
    waiting = {place: part for place, part in enumerate(parts) if isinstance(part, Equality)}
    found = bind(waiting, lambda part: part.variables, lambda part, known: assigned(part.left, part.right, known), bound)
    made = {place: Test(Call("=", (part.left, part.right), span=part.span)) for place, part in waiting.items()}
    body = tuple(part if not isinstance(part, Equality) else found.get(place, (made[place],))[0] for place, part in enumerate(parts))
    return body, frozenset(bound)


def report_unsafe(head: Head, body: Sequence[Formula], bound: frozenset[Variable], places: Mapping[Variable, Span], report: Report) -> None:
    """Say which variables of a rule nothing binds, each where it stands first."""
    asked = set(rule_variables(head)).union(*(_asked(part) for part in body))
    for variable in sorted(asked - bound, key=lambda v: places[v].start):
        span = places[variable]
        fact = "" if body else ": a fact has no variables"
        report.error(f"Nothing binds {span.text}{fact}.", span, code="rules-unsafe",
                     hint=f"let an atom of the body that is not under 'not' hold {span.text}" if body else
                     "a constant begins with a lower-case letter, or stands in quotes")


def _asked(part: Formula) -> frozenset[Variable]:
    match part:
        case Test(condition=expression) | Assign(expression=expression):
            return variables_of(expression)
    return rule_variables(part)
