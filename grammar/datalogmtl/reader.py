"""DatalogMTL's notation by recursive descent: one rule or fact a line, in any order, after the lines that say what is read.

A rule goes on on the next line behind ``:-`` and the commas of its body, and where the next line begins with them; a full stop may end
it.
"""

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from engine.ir.rules import Atom, Fact, Rule
from engine.ir.spans import Span
from engine.ir.terms import Constant, Term, Variable
from engine.timeline import ALWAYS, Interval
from grammar.datalog.bodies import BodyReader, report_unsafe, resolved
from grammar.datalogmtl.forward import (BOX_MINUS, BOX_PLUS, CONSTANTS, DIAMOND_MINUS, DIAMOND_PLUS, Clause, Metric, Operator, Part, Range,
                                        Translator, Without, number, when)
from grammar.durations import DurationError, amount
from grammar.rule_text import MAX_NESTING, Report, Stop
from grammar.text import Token
from grammar.terms import literal

_WORDS = {name.lower(): name for name in (BOX_MINUS, BOX_PLUS, DIAMOND_MINUS, DIAMOND_PLUS)}
# Operators by the sign of their interval: those that look back, and ahead.
_SIGNED = {"sometime": (DIAMOND_MINUS, DIAMOND_PLUS), "always": (BOX_MINUS, BOX_PLUS)}
_MARKS = {"<->": DIAMOND_MINUS, "<+>": DIAMOND_PLUS, "[-]": BOX_MINUS, "[+]": BOX_PLUS}
_BINARY = ("since", "until")
_SPELLED = (*_WORDS.values(), "SOMETIME", "ALWAYS", "Since", "Until", "UNTIL")
_ENDS_BINARY = re.compile(r"\w+(?:Since|Until|UNTIL)")
_PLAIN = re.compile(r"\w[\w.\-]*(?=[ \t]*[,)])")


class Reader(BodyReader):
    """Reads a text; what is wrong is in the report, and what is not wrong is given all the same."""

    directives = ("PREFIX", "FROM", "UNIT")
    reserved = frozenset(("not", *map(str.lower, _SPELLED)))
    hints = {**BodyReader.hints, **dict.fromkeys(("<-", "\u2190"), "a rule is written head :- body"),
             "@": "'@' stands behind a fact: A(a)@[1,2]", **dict.fromkeys(("&", "&&"), "conditions stand side by side, with commas"),
             "!": "negation is written not"}
    unit_ms = 1_000
    whole = "line"
    begins = "an atom or an operator such as Diamondminus[0,5]"
    goes_on = "':-', '@' or the end of the line"
    of_facts = "write when it holds: A(a)@[1,2]; or a rule: Boxplus[0,1]A(X) :- B(X)"
    _fact = False

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._lines = list(_lines(self._tokens, report.text))
        self._blank: Span | None = None

    def clauses(self) -> Iterator[Rule | Fact]:
        before: int | None = None
        for tokens in self._lines:
            end = tokens[-1].end
            self._tokens, self._place = [*tokens, Token("eof", "", end, end)], 0
            try:
                if self.at_directive():
                    if before is not None:
                        self.report.error(f"{self.token.text} stands before the first rule or fact, that of line {before}.", self.here())
                    self.sources()
                    self._end()
                else:
                    before = before or self.here().line
                    yield from self._clause()
            except Stop:
                pass

    def directive(self, word: str, start: int) -> None:
        """``UNIT 1 sec``: what 1 means in all times of the text."""
        count = self.next().text if self.token.kind == "number" else "1"
        unit = self.expect_kind("word", "ms, sec, min, h or d").text
        try:
            ms = amount(count, unit)
        except DurationError as error:
            self.report.error(error.message, self.span(start), hint="UNIT 1 sec")
            return
        if ms == 0:
            self.report.error("A unit of no length.", self.span(start), hint="UNIT 1 sec")
        else:
            self.unit_ms = ms

    def _clause(self) -> Iterator[Rule | Fact]:
        start = self.token.start
        texts = [token.text for token in self._tokens]
        self._fact = "@" in texts and ":-" not in texts
        self._blank = None
        self.places.clear()
        head = self._metric()
        if self.take("@"):
            interval = self._when()
            self._end()
            yield from self._fact_of(head, interval, start)
        elif self.take(":-"):
            body = self.body()
            self._end()
            yield from self._rule_of(Clause(head, tuple(body), self.span(start)))
        elif self.token.kind == "eof":
            yield from self._fact_of(head, ALWAYS, start)
        else:
            self.fail(self.goes_on)

    def _end(self) -> None:
        if self.token.kind != "eof":
            self.fail("the end of the line", "one rule or fact a line")

    def _rule_of(self, clause: Clause) -> Iterator[Rule]:
        if self._blank is not None:
            self.report.error("A rule has no blank nodes.", self._blank, hint="write a variable")
        noted = len(self.report.diagnostics)
        translator = Translator(clause, self.unit_ms, self.report)
        head, parts = translator.head(), list(translator.body())
        body, bound = resolved(parts)
        if len(parts) == len(clause.body) and not clause.binary:
            report_unsafe(head if head is not None else clause.head.atom, body, bound, self.places, self.report)
        if head is not None and len(self.report.diagnostics) == noted:
            yield Rule(head, body, span=clause.span)

    def _fact_of(self, metric: Metric, interval: Interval | None, start: int) -> Iterator[Fact]:
        if metric.operators or metric.binary is not None:
            operator = metric.binary or metric.operators[0].span
            self.report.error(f"A fact has no operators; here stands {operator.text}.", operator, hint=self.of_facts)
            return
        terms = tuple(map(self._ground, metric.atom.terms))
        ground = tuple(term for term in terms if isinstance(term, Constant))
        if len(ground) == len(terms) and interval is not None and metric.atom.predicate not in CONSTANTS:
            yield Fact(Atom(metric.atom.predicate, ground, span=self.span(start)), interval)
        elif metric.atom.predicate in CONSTANTS:
            self.report.error(f"{metric.atom.predicate} is no predicate of facts.", self.span(start))

    def _ground(self, term: Term) -> Term:
        """A term of a fact: with ``@`` behind it, every name is a constant."""
        if not isinstance(term, Variable):
            return term
        span = self.places[term]
        if self._fact and span.text[0] != "?":
            return literal(term.name)
        self.report.error(f"Nothing binds {span.text}: a fact has no variables.", span, code="rules-unsafe",
                          hint="a constant begins with a lower-case letter, or stands in quotes")
        return term

    def part(self) -> Part:
        if self.token.text == "not" and self.token.kind == "word":
            self.next()
            return Without(self._metric())
        if self._operator() is None and self.starts_comparison():
            return self.comparison()
        return self._metric()

    def _metric(self) -> Metric:
        start = self.token.start
        metric = self._unary()
        binary: Span | None = None
        for _ in range(MAX_NESTING):
            if self.token.kind != "word" or self.token.text.lower() not in _BINARY:
                break
            binary = binary or self.here()
            self.next()
            self._range()
            self._unary()
        return Metric(metric.operators, metric.atom, self.span(start), binary or metric.binary)

    def _unary(self) -> Metric:
        start = self.token.start
        operators: list[Operator] = []
        while (found := self._operator()) is not None:
            if len(operators) == MAX_NESTING:
                self.refuse(f"More than {MAX_NESTING} operators before one atom.", code="nesting-too-deep")
            operators.append(self._taken(*found))
        word = self.here()
        atom = self.atom(self.begins)
        if self.at("[") and _ENDS_BINARY.fullmatch(word.text):      # ASince[1,2]B
            split = word.end - len("since")
            self._range()
            self._unary()
            return Metric(tuple(operators), atom, self.span(start), self.report.span(split, word.end))
        return Metric(tuple(operators), atom, self.span(start))

    def _operator(self) -> tuple[str, int] | None:
        """The operator that stands here, and of how many tokens: a word as MeTeoR spells it, in any case before ``[``; or marks."""
        if self.token.kind == "word":
            word = self.token.text.lower()
            meant = self.token.text in _SPELLED or self.after.kind == "mark" and self.after.text == "["
            return (word, 1) if meant and (word in _WORDS or word in _SIGNED) else None
        for count in (2, 3):
            following = self._tokens[self._place:self._place + count]
            if "".join(token.text for token in following) in _MARKS and len(following) == count:
                return "".join(token.text for token in following), count
        return None

    def _taken(self, name: str, count: int) -> Operator:
        start = self.token.start
        for _ in range(count):
            self.next()
        span = self.span(start)
        written = self._range()
        if name not in _SIGNED:
            return Operator(_WORDS.get(name) or _MARKS[name], written, span)
        back, ahead = _SIGNED[name]
        return Operator(back, written.mirrored, span) if written.low < 0 else Operator(ahead, written, span)

    def _when(self) -> Interval | None:
        if self.at("[", "("):
            return when(self._range(), self.unit_ms, self.report)
        start = self.token.start
        value = self._time()
        return when(Range(value, value, True, True, self.span(start)), self.unit_ms, self.report)

    def _range(self) -> Range:
        """``[1,2)``, or of a single point ``[1]``."""
        start = self.token.start
        if not self.at("[", "("):
            self.fail("an interval such as [0,5]", "ends are numbers, inf or -inf: (0,2.5], [1,inf)")
        opening = self.next().text
        low = self._time()
        high = self._time() if self.take(",") else low
        if not self.at("]", ")"):
            self.fail("']' or ')'" if self._tokens[self._place - 2].text == "," else "',', ']' or ')'")
        closing = self.next().text
        return Range(low, high, opening == "[", closing == "]", self.span(start))

    def _time(self) -> Fraction | float:
        sign = -1 if self.take("-") else 1
        if sign == 1:
            self.take("+")
        if self.token.kind == "word" and self.token.text.lower() == "inf":
            self.next()
            return sign * math.inf
        token = self.expect_kind("number", "a number, inf or -inf")
        value = number(token.text)
        if self.take("/"):
            below = number(self.expect_kind("number", "a number").text)
            value = None if value is None or not below else value / below
        if value is None:
            self.refuse("This number is no time.", "a time has at most 40 digits, and nothing is divided by 0", self.span(token.start))
        return sign * value

    def atom(self, expected: str = "an atom such as p(X, a)") -> Atom:
        """As all languages of this kind have them; but in a text without PREFIX, as MeTeoR's are, ``a1:p(X)`` is about ``a1:p``."""
        if not self._named_plainly():
            return super().atom(expected)
        token = self.next()
        return Atom(token.text, self._arguments(), span=self.span(token.start))

    def term(self) -> Term:
        """As all languages of this kind have them, blank nodes, and without PREFIX ``a1:b`` as a string."""
        if self._named_plainly():
            return literal(self.next().text)
        if self.token.text == "_" and self.after.kind == "name" and self.after.text[0] == ":" and self.after.start == self.token.end:
            start = self.next().start
            label = self.next().text[1:]
            self._blank = self._blank or self.span(start)
            return Constant(f"_:{label}")
        return super().term()

    def _named_plainly(self) -> bool:
        return self.token.kind == "name" and self.token.text[0] != ":" and not self.prefixes

    def _argument(self) -> Term:
        """In facts also names that begin with a digit or ``_``, or have hyphens or dots in them, as MeTeoR takes them."""
        match = _PLAIN.match(self.report.text, self.token.start) if self._fact and self.token.kind in ("word", "number") else None
        if match is None or match.end() == self.token.end and match[0][0] != "_":
            return super()._argument()
        while self.token.start < match.end() and self.token.kind != "eof":
            self.next()
        return literal(match[0])


def _lines(tokens: Sequence[Token], text: str) -> Iterator[list[Token]]:
    """The tokens of each line, with those of the lines on which it goes on, without the full stop behind it."""
    line: list[Token] = []
    goes_on: tuple[str, ...] = (":-",)
    for token in tokens:
        new = bool(line) and any(c in text[line[-1].end:token.start] for c in "\n\r")
        if token.kind == "eof" or new and token.text not in goes_on and line[-1].text not in goes_on:
            if line:
                yield line
            line, goes_on = [], (":-",)
        if token.text == ":-":
            goes_on = (":-", ",")
        if token.kind == "mark" and token.text == "." and not text[token.end:token.end + 1].strip():
            if line:
                yield line
            line, goes_on = [], (":-",)
        elif token.kind != "eof":
            line.append(token)
