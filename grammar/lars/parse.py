"""Texts of plain LARS to rule sets: rules ``head <- body.`` with heads ``p(X)`` and ``@T p(X)``; in bodies extended atoms, ``not`` and
comparisons.

An extended atom has at most one window, then at most one of diamond, box and @, then an atom (Bazoobandi, Beck, Urbani, "Expressive
Stream Reasoning with Laser", section 2.1). What LARS has beyond that is refused by name.
"""

from collections.abc import Iterator, Sequence

from engine.ir.rules import At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Head, Negation, Rule, RuleSet, WindowFormula
from engine.ir.spans import Diagnostic
from engine.ir.strata import Known, heads, predicate_of, unstratified
from engine.ir.terms import Constant, Term
from engine.timeline import ALWAYS, MAX, Interval, granule, operator
from grammar.binding import Equality
from grammar.datalog.bodies import AGGREGATES, report_unsafe, resolved
from grammar.lars.timeline import TimelineReader, Window
from grammar.rule_text import MAX_ERRORS, Report, Stop
from grammar.text import Token

MEDIA = "text/x-lars"
ARROWS = ("<-", ":-", "\u2190")
DIAMOND, BOX = "diamond", "box"
GLYPHS = {"\u25c7": DIAMOND, "\u25a1": BOX}
AN_ATOM = "an atom such as p(X, a)"
NO_AGGREGATES = "plain LARS has no aggregates"
NO_OPERAND = ("(", ".", ",", *ARROWS)     # behind a word of LARS, what shows that it is meant to be a predicate
EVER = Interval(0, MAX)


def parse_lars(text: str, name: str) -> RuleSet:
    """The rule set `name` that a LARS program says (docs/lars.md). Streams and graphs are its imports, facts hold always or during a
    granule. Raises DiagnosticError with all that is wrong, in the order of the text."""
    report = Report(text.removeprefix("\ufeff"))
    reader = RuleReader(report)
    found = [*reader.clauses()]
    rules, facts = [part for part in found if isinstance(part, Rule)], [part for part in found if isinstance(part, Fact)]
    start = reader.start_at_ms()
    report.diagnostics += problems(rules, reader.tuple_windows)
    report.raise_if_any()
    return RuleSet(name, tuple(rules), tuple(facts), reader.granularity_ms, start, tuple(reader.imports))


class RuleReader(TimelineReader):
    """Reads a program; `tuple_windows` are tuple windows with their atoms, for the check of what they count."""

    reserved = frozenset(("not", "and", DIAMOND, BOX))

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.tuple_windows: list[tuple[Atom, Window]] = []

    def clauses(self) -> Iterator[Rule | Fact]:
        """All rules and facts, up to the end of the text; after a mistake it goes on behind the next dot."""
        none = True
        while self.token.kind != "eof" and len(self.report.diagnostics) < MAX_ERRORS:
            is_rule, begin = not self.at_directive(), self.token
            try:
                if is_rule:
                    yield self._rule()
                    none = False
                else:
                    if not none:
                        self.report.error(f"{self.token.word} stands before the rules.", self.here(), hint="move it to the text's begin")
                    self.sources()
            except Stop:
                self._recover(begin, is_rule)
        if none and not self.report.diagnostics:
            self.report.error("The text has no rule.", self.here(), hint="p(X) <- [10 sec] diamond q(X).")

    def _recover(self, begin: Token, is_rule: bool) -> None:
        """Go on behind the next dot; after a line before the rules, or a string that is never closed, on the next line."""
        by_line = not is_rule or self.token.kind == "open"
        end = self.report.text.find("\n", self.token.start if self.token is not begin else begin.end)
        while self.token.kind != "eof" and not self.at_directive():
            if by_line and 0 <= end < self.token.start or self.next().text == ".":
                return

    def _rule(self) -> Rule | Fact:
        self.places.clear()
        start = self.token.start
        head = self._head()
        parts: list[Formula | Equality] = []
        arrow = self.at(*ARROWS)
        if arrow:
            self.next()
            parts = self.body()
        if not self.take("."):
            self._no_dot(arrow)
        body, bound = resolved(parts)
        report_unsafe(head, body, bound, self.places, self.report)
        return Rule(head, body, span=self.span(start)) if arrow else self._fact(head)

    def _no_dot(self, arrow: bool) -> None:
        begins = self.at("@") or self.starts_atom()
        if self.at(","):
            self.fail("'<-' or '.'", "a head has one atom; write a rule for each")
        if self.at(":="):
            self.fail("'<-' or '.'", "a rule is written head <- body.")
        if self.token.word == "OR":
            self.fail("',' or '.'", "write a rule for each alternative")
        if arrow and self.at(*ARROWS):
            self.fail("',' or '.'", "end the rule before this one with a dot, or put a space between < and a negative number")
        if self.at("<", "<=", ">", ">=", "=", "!=", "<>", "=="):
            self.fail("',' or '.'", "an atom has no value to compare; " + NO_AGGREGATES)
        self.fail("',' or '.'" if arrow else "'<-' or '.'", "a rule ends with a dot" if begins else None)

    def separator(self) -> bool:
        found = self.at(",", "&&") or self.token.word == "AND"
        if found:
            self.next()
        return found

    def _head(self) -> Head:
        what = "A window" if self.at("[") else {"not": "Negation", DIAMOND: "diamond", BOX: "box"}.get(self._word())
        if what is not None and self.after.text not in NO_OPERAND:
            self.refuse(f"{what} in a head is not plain LARS.", "a head is p(X) or @T p(X)")
        if self.at(*ARROWS):
            self.fail("a head", "a rule without head is no rule of plain LARS; derive an atom that says what is wrong")
        if self.take("@"):
            return At(self.instant(), self._atom())
        return self._atom("a rule, such as p(X) <- q(X)")

    def _fact(self, head: Head) -> Fact | Rule:
        """A head by itself: what always holds, or is an event of its granule. What is not ground has been reported."""
        match head:
            case Atom(terms=terms) if all(isinstance(t, Constant) for t in terms):
                return Fact(head, ALWAYS)
            case At(instant=Constant() as at, body=Atom() as atom) if all(isinstance(t, Constant) for t in atom.terms):
                lexical = at.token[1:].partition('"')[0]
                return Fact(atom, granule(int(lexical or 0), self.granularity_ms))
        return Rule(head, ())

    def part(self) -> Formula | Equality:
        if self._word() == "not":
            self.next()
            if self._word() == "not":
                self.refuse("'not' under 'not' is not plain LARS.", "leave out both")
            if not self.at("(") and self.starts_comparison():
                self.refuse("'not' before a comparison is not plain LARS.", "use the opposite one: != for =, >= for <")
            if self.at("("):
                self._atom_under("'not'")
            return Negation(self._extended_atom())
        return self.comparison() if self.starts_comparison() else self._extended_atom()

    def _extended_atom(self) -> Formula:
        window = self.window() if self.at("[") else None
        if self.at("["):
            self.refuse("Nested windows are not plain LARS.", "give the inner one a rule of its own")
        if self.at("\u229e"):
            self.fail("a window in brackets", "the window operator of size 3 is written [3]")
        operator_: Term | str | None = self._word()
        if self.take("@"):
            operator_ = self.instant()
        elif operator_ in (DIAMOND, BOX):
            self.next()
        else:
            operator_ = None
        above = "an operator" if operator_ is not None else "a window" if window is not None else None
        atom = self._atom() if above is None else self._atom_under(above)
        if window is not None and window.unit == "tuple":
            self.tuple_windows.append((atom, window))
        return self._formula(window, operator_, atom)

    def _formula(self, window: Window | None, operator_: Term | str | None, atom: Atom) -> Formula:
        if isinstance(operator_, str):
            kind = DiamondMinus if operator_ == DIAMOND else BoxMinus
            if window is not None and window.unit == "time":
                return kind(operator(0, window.size * self.granularity_ms), atom)
            inner: Formula = kind(EVER, atom)
        else:
            inner = atom if operator_ is None else At(operator_, atom)
        return inner if window is None else WindowFormula(window.unit, window.size, inner)

    def _atom_under(self, above: str) -> Atom:
        """The atom under a window or an operator: nothing else stands there in plain LARS."""
        word = self._word()
        if word == "not":
            self.refuse(f"'not' under {above} is not plain LARS.",
                        "write not before it; [w] box not p is not [w] diamond p, [w] diamond not p is not [w] box p")
        if word in (DIAMOND, BOX) or self.at("@"):
            self.refuse("An operator under an operator is not plain LARS.", "give the inner one a rule of its own")
        if self.at("["):
            self.refuse("A window under an operator is not plain LARS.", "a window comes first: [3] diamond p(X)")
        if self.at("("):
            self.refuse(f"Brackets under {above} are not plain LARS.", "give them a rule of their own: both(X) <- p(X), q(X).")
        if self.at("+", "-", "*", "/"):
            self.fail(AN_ATOM, "compute the instant before: U = T + 1, @U p(X)")
        return self._atom()

    def _atom(self, expected: str = AN_ATOM) -> Atom:
        word = self._word()
        if word in self.reserved and self.after.text in NO_OPERAND:
            self.refuse(f"'{self.token.text}' is a word of LARS, and no predicate's name.", "take another name")
        atom = self.atom(expected)
        if self.at("{") and atom.predicate.lower() in AGGREGATES:
            self.fail("',' or '.'", NO_AGGREGATES)
        return atom

    def _word(self) -> str:
        """The next token as a word of LARS, whatever its case; the paper's glyphs are words too."""
        if self.token.kind == "word":
            return self.token.text.lower()
        return GLYPHS.get(self.token.text, "") if self.token.kind == "mark" else ""


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
