"""RIF's presentation syntax (RIF-Core section 2.6; RIF-BLD section 2.6 where Core refers to it) by recursive descent.

Taken besides: ``If ... Then ...`` for ``... :- ...`` (as W3C's test cases and the papers write rules), and Streaming RIF-Core's
``Window``. What other dialects add is read so far that it can be refused by name.
"""

import re
from decimal import Decimal

from engine.ir.rules import Import
from engine.ir.spans import Span
from engine.timeline import LONGEST_MS
from grammar.rif.reader import Reader
from grammar.rif.syntax import (FOREIGN, Apply, Clause, Connective, Const, Document, External, Foreign, Formula, Frame, ListTerm, Pair,
                                Quantified, Term, Var)
from grammar.rule_text import Report

_PLAIN = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


class Parser(Reader):
    def document_(self) -> Document:
        """``Document(...)``, up to the end of the text."""
        self.skip_note()
        self.expect("Document")
        self.expect("(")
        self._directives()
        imports = []
        while self.token.kind == "note" and self._note_before("Import") or self.at("Import"):
            imports.append(self._import())
        begin = self.token.start
        window = self._window()
        window_span = self.span(begin) if window is not None else None
        clauses: list[Clause] = []
        name = self.skip_note()
        if self.at("Group"):
            self._group(clauses)
        elif name or not self.at(")"):
            self.fail("Group or ')'" if imports or window else "Base, Prefix, Import, Window, Group or ')'",
                      "rules stand in a group: Document(... Group( ... ))")
        self.expect(")")
        self._end()
        return Document(tuple(clauses), tuple(imports), window, window_span)

    def _end(self) -> None:
        if self.token.kind != "eof":
            self.fail("the end of the text")

    def _directives(self) -> None:
        if self.at("Dialect"):
            self._foreign()
        if self.take("Base"):
            self.expect("(")
            self.base = self.iri()
            self.expect(")")
        while self.take("Prefix"):
            self.expect("(")
            if self.token.kind == "curie" and self.token.text.endswith(":"):
                self.fail("a prefix without colon", f"Prefix({self.token.text[:-1]} <http://...>)")
            prefix = self.next().text if self.token.kind == "word" else ""
            self.prefixes[prefix] = self.iri("a prefix" if not prefix else "an IRI such as <http://ex.org/>")
            self.expect(")")

    def _note_before(self, word: str) -> bool:
        """Whether an annotation stands here with this word behind it; then it is skipped."""
        before = self._place
        self.skip_note()
        if self.at(word):
            return True
        self._place = before
        return False

    def _import(self) -> Import:
        start = self.expect("Import").start
        self.expect("(")
        location = self.iri()
        profile = None if self.at(")") else self.iri("the IRI of a profile, or ')'")
        self.expect(")")
        return Import(location, profile, span=self.span(start))

    def _window(self) -> int | None:
        """``Window 10 s``, in brackets or not; the papers' grammar has no key word."""
        start = self.token.start
        word = self.take("Window")
        if not word and self.token.kind != "number":
            return None
        bracket = self.take("(")
        number = self.expect_kind("number", "a number")
        unit = self.next() if self.at(*UNITS) else self.fail("ms, s, m or h", "Window 10 s")
        if bracket:
            self.expect(")")
        return window_ms(self.report, number.text, unit.text, self.span(start))

    def _group(self, clauses: list[Clause]) -> None:
        self.expect("Group")
        self.expect("(")
        while not self.at(")"):
            name = self.skip_note()
            if self.at("Group"):
                self._group(clauses)
            elif self.at(")"):
                self.fail("a rule, a fact or a group")
            else:
                clauses.append(self._rule(name))
        self.expect(")")

    def _rule(self, name: str | None) -> Clause:
        start = self.token.start
        if not self.take("Forall"):
            head, body = self._clause()
            return Clause((), head, body, name, self.span(start))
        variables = self._variables()
        self.expect("(", "the rule of a Forall stands in brackets: Forall ?x ( head :- body )")
        name = self.skip_note() or name
        head, body = self._clause()
        self.expect(")")
        return Clause(variables, head, body, name, self.span(start))

    def _variables(self) -> tuple[Var, ...]:
        found = []
        while self.token.kind == "variable":
            found.append(self._variable())
        return tuple(found) if found else self.fail("a variable")

    def _variable(self) -> Var:
        token = self.next()
        return Var(token.text[1:], self.report.of(token))

    def _clause(self) -> tuple[Formula, Formula | None]:
        if self.take("If"):
            body = self.formula()
            self.expect("Then")
            return self.formula(), body
        head = self.formula()
        return head, self.formula() if self.take(":-") else None

    def formula(self) -> Formula:
        """A formula of a body or head; what may stand where is checked later, for both syntaxes."""
        self.skip_note()
        start = self.token.start
        if self.at("And", "Or"):
            word = self.next().text
            self.expect("(")
            parts = []
            while not self.at(")"):
                parts.append(self.formula())
            self.next()
            return Connective(word, tuple(parts), self.span(start))
        if self.take("Exists"):
            variables = self._variables()
            self.expect("(")
            body = self.formula()
            self.expect(")")
            return Quantified(variables, body, self.span(start))
        if self.token.kind == "word" and self.token.text in FOREIGN:
            return self._foreign()
        return self._atomic(start)

    def _foreign(self) -> Foreign:
        """A construct of another dialect, with all that stands in its brackets."""
        token = self.next()
        while self.token.kind == "variable":
            self.next()
        if self.at("("):
            self._skip_brackets()
        return Foreign(token.text, self.span(token.start))

    def _skip_brackets(self) -> None:
        depth = 0
        while True:
            text = self.next().text
            depth += (text in ("(", "[", "(*")) - (text in (")", "]", "*)"))
            if depth == 0:
                return

    def _atomic(self, start: int) -> Formula:
        term = self._term("a formula")
        if self.take("["):
            return self._frame(term, start)
        if self.at("=", "#", "##"):
            operator = self.next().text
            return Pair(operator, term, self._term(), self.span(start))
        if isinstance(term, (Apply, External)):
            return term
        self.fail("'(', '[', '=', '#' or '##'", "a formula is p(...), s[p -> o], a = b, a # b, And(...), Or(...) or Exists ?x (...)")

    def _frame(self, subject: Term, start: int) -> Frame:
        slots: list[tuple[Term, Term]] = []
        while not self.take("]"):
            slot = self._term("a slot such as ex:p -> ?x, or ']'")
            self.expect("->")
            slots.append((slot, self._term()))
        return Frame(subject, tuple(slots), self.span(start))

    def _term(self, expected: str = "a term") -> Term:
        """A term, where one begins here; else that is expected."""
        if self.starts_constant() or self.token.kind in ("variable", "note") or self.token.kind == "word" and self.after.text == "(":
            return self.term()
        self.fail(expected)

    def term(self) -> Term:
        """A term, or an atom: ``op(...)``."""
        self.skip_note()
        start = self.token.start
        if self.token.kind == "variable":
            found: Term = self._variable()
        elif self.take("External"):
            return self._external(start)
        elif self.at("List", "Seq"):
            self.next()
            return self._list(start)
        elif self.starts_constant():
            found = Const(self.constant(), self.span(start))
        else:
            self.fail("a term")
        return self._apply(found, start) if self.at("(") else found

    def _external(self, start: int) -> External:
        self.expect("(")
        call = self.term()
        if not isinstance(call, Apply):
            self.fail("a call", "External(func:numeric-add(?x 1))")
        self.expect(")")
        return External(call, self.span(start))

    def _list(self, start: int) -> ListTerm:
        self.expect("(")
        members: list[Term] = []
        rest: Term | None = None
        while not self.take(")"):
            if self.take("|"):
                rest = self._term()
                self.expect(")")
                break
            members.append(self._term())
        return ListTerm(tuple(members), rest, self.span(start))

    def _apply(self, op: Term, start: int) -> Apply:
        self.expect("(")
        args: list[Term] = []
        names: list[str] = []
        while not self.take(")"):
            if self.token.kind in ("word", "variable", "curie", "iri", "string", "local") and self.after.text == "->":
                names.append(self.next().text)
                self.next()
            args.append(self._term("a term or ')'"))
        return Apply(op, tuple(args), tuple(names), self.span(start))


def window_ms(report: Report, number: str, unit: str, span: Span) -> int | None:
    """The length of a window in ms; noted as a mistake if it is not a whole number of them, or none."""
    length = Decimal(number) * UNITS[unit] if _PLAIN.fullmatch(number) else Decimal(0)
    if length > LONGEST_MS:
        report.error("A window of more than 1,000 years.", span, hint="Window 10 s")
        return None
    if length <= 0 or length != int(length):
        report.error("A window is a whole number of milliseconds, at least one.", span, hint="Window 10 s")
        return None
    return int(length)
