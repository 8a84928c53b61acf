"""Finds the clauses that are not SPARQL's, reads them, and leaves a SPARQL text of the same length behind.

Key words are looked for among the tokens, so that strings, IRIs and comments cannot be taken for them. ``WINDOW`` and ``STREAM``
groups become ``GRAPH`` groups whose offsets are noted.
"""

from dataclasses import dataclass, field

from pyparsing import ParserElement

from engine.ir.spans import Diagnostic
from engine.ir.statement import OWN_WINDOW
from grammar.clauses import FORMS, REGISTER, SOURCE, STREAM_PATTERN, Clause, ClauseError, read_clause
from grammar.hints import clause_diagnostic
from grammar.text import Leaf, Text, Token

MAX_SOURCES = 200
OPERATORS = frozenset(("RSTREAM", "ISTREAM", "DSTREAM"))
_ANY_GRAPH = "GRAPH ?_ "      # stands for STREAM <s> with a window that could not be read
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(slots=True)
class Head:
    """What was found: clauses as read (names not resolved), and the text that is left for SPARQL's grammar."""

    register: Clause | None = None
    sources: list[Clause] = field(default_factory=list)
    operators: list[Leaf] = field(default_factory=list)
    windows: dict[int, str | None] = field(default_factory=dict)    # by offset: GRAPH that was WINDOW (None) or STREAM (its name)
    body: str = ""
    complete: bool = True       # whether what is left can be read, with mistakes or without
    unread: list[tuple[int, int]] = field(default_factory=list)     # where clauses stood that could not be read


def read_head(text: Text, tokens: tuple[Token, ...], clean: str) -> tuple[Head, list[Diagnostic]]:
    """The head of a statement, with what is wrong in its clauses."""
    reader = _Reader(text, tokens, clean)
    reader.read()
    reader.head.body = "".join(reader.characters)
    return reader.head, reader.errors


class _Reader:
    def __init__(self, text: Text, tokens: tuple[Token, ...], clean: str) -> None:
        self.text, self.tokens, self.clean = text, tokens, clean
        self.characters = list(clean)
        self.at = 0
        self.head = Head()
        self.errors: list[Diagnostic] = []

    def read(self) -> None:
        """Prologue, REGISTER, prologue, query, in the order in which they stand."""
        self._skip_prologue()
        if self._word() == "REGISTER":
            begin = self.tokens[self.at].start
            self.head.register = self._clause(REGISTER)
            if self.head.register is None:
                while self.at < len(self.tokens) and self._word() not in FORMS | OPERATORS:
                    self.at += 1
                self._leave_out(begin)
            what = self.head.register.get("what") if self.head.register else None
            if what is not None and what.text in OPERATORS:
                self.head.operators.append(what)
            self._skip_prologue()
        self._operator()
        form = self._word()
        if form not in FORMS:
            return
        self.at += 1
        if form in ("SELECT", "CONSTRUCT"):
            self._operator()
        if form == "CONSTRUCT" and self._mark() == "{":
            self._skip_brackets()
        self._sources()
        self._groups()

    def _word(self) -> str:
        return self.tokens[self.at].word if self.at < len(self.tokens) else ""

    def _mark(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) and self.tokens[self.at].kind == "mark" else ""

    def _skip_prologue(self) -> None:
        while self._word() in ("PREFIX", "BASE"):
            self.at += 1
            while self.at < len(self.tokens) and self.tokens[self.at].kind in ("name", "iri"):
                self.at += 1

    def _operator(self) -> None:
        if self._word() in OPERATORS:
            token = self.tokens[self.at]
            self.head.operators.append(Leaf("word", token.word, token.start, token.end))
            self._blank(token.start, token.end)
            self.at += 1

    def _sources(self) -> None:
        """FROM and USING clauses, up to the group of WHERE."""
        while self.at < len(self.tokens):
            token, word, mark = self.tokens[self.at], self._word(), self._mark()
            if mark == "{" or word == "WHERE":
                return
            if mark in _OPENING:
                self._skip_brackets()
            elif word in ("FROM", "USING"):
                clause = self._clause(SOURCE)
                if clause is None:
                    self._skip_to_more(token.start)
                    continue
                if self._too_many(self.tokens[self.at - 1]):
                    return
                self.head.sources.append(clause)
                self._expect_more()
            else:
                self.at += 1

    def _too_many(self, token: Token) -> bool:
        if len(self.head.sources) < MAX_SOURCES:
            return False
        self._error(f"A statement has at most {MAX_SOURCES} sources.", token)
        self.head.complete = False
        return True

    def _expect_more(self) -> None:
        """After a source: another, or WHERE."""
        if self.at >= len(self.tokens) or self._word() in ("FROM", "USING", "WHERE") or self._mark() == "{":
            return
        token = self.tokens[self.at]
        self.errors.append(clause_diagnostic(self.text, self.tokens, ClauseError("Expected FROM, USING or WHERE", token.start, 0)))
        self._skip_to_more(token.start)

    def _skip_to_more(self, begin: int) -> None:
        """After a mistake in a clause: to the next source, or to WHERE, so that the mistakes there are told too."""
        self.at += 1
        while self.at < len(self.tokens) and self._mark() != "{":
            if self._word() in ("FROM", "USING", "WHERE") and self.tokens[self.at - 1].text != "[":    # not [FROM NOW-...]
                break
            self.at += 1
        self._leave_out(begin)

    def _leave_out(self, begin: int) -> None:
        """What stands from `begin` up to the next token is of a clause that could not be read: the rest is read without it."""
        if self.at == len(self.tokens):
            self.head.complete = False
            return
        end = self.tokens[self.at].start
        self._blank(begin, end)
        self.head.unread.append((begin, end))

    def _groups(self) -> None:
        """WINDOW and STREAM groups of WHERE; sources that come too late."""
        depth = 0
        while self.at < len(self.tokens):
            token, word, mark = self.tokens[self.at], self._word(), self._mark()
            depth += (mark in _OPENING) - (mark in _CLOSING)
            if word == "WINDOW":
                self.characters[token.start:token.end] = "GRAPH "
                self.head.windows[token.start] = None
            elif word == "STREAM":
                self._stream_group(token)
                continue
            elif word in ("FROM", "USING"):
                self._too_late(token, depth)
                return
            self.at += 1

    def _stream_group(self, token: Token) -> None:
        clause = self._clause(STREAM_PATTERN)
        if clause is None:
            while self.at < len(self.tokens) and self._mark() != "{":
                self.at += 1
            self._leave_out(token.start)
            if self.head.complete:
                self.characters[token.start:token.start + len(_ANY_GRAPH)] = _ANY_GRAPH
            return
        stream = clause.parts["stream"]
        name = f"{OWN_WINDOW}{len(self.head.windows)}"
        if self._too_many(token):
            self.at = len(self.tokens)
            return
        self.head.sources.append(Clause({**clause.parts, "generated": name}, clause.end))
        self.characters[token.start:stream.end] = "GRAPH ".ljust(stream.start - token.start) + stream.text
        self.head.windows[token.start] = name

    def _too_late(self, token: Token, depth: int) -> None:
        self.head.complete = False
        following = self.tokens[self.at + 1].word if self.at + 1 < len(self.tokens) else ""
        clause = f"{token.word} {following}" if following in ("STREAM", "NAMED", "RULES", "GRAPH") else token.word
        if depth > 0:
            self._error(f"{clause} stands in a sub-query or group; sources are named once, for the whole statement.", token,
                        "move it before the outer WHERE")
        else:
            self._error(f"{clause} stands after WHERE.", token, "move it between the SELECT clause and WHERE")

    def _clause(self, element: ParserElement) -> Clause | None:
        """Read and blank a clause; on a mistake note it and return None."""
        start = self.tokens[self.at].start
        try:
            clause = read_clause(element, self.clean, start)
        except ClauseError as error:
            self.errors.append(clause_diagnostic(self.text, self.tokens, error))
            return None
        self.errors += [clause_diagnostic(self.text, self.tokens, error) for error in clause.errors]
        self._blank(start, clause.end)
        while self.at < len(self.tokens) and self.tokens[self.at].start < clause.end:
            self.at += 1
        return clause

    def _skip_brackets(self) -> None:
        depth = 0
        while self.at < len(self.tokens):
            depth += (self._mark() in _OPENING) - (self._mark() in _CLOSING)
            self.at += 1
            if depth == 0:
                return

    def _blank(self, start: int, end: int) -> None:
        self.characters[start:end] = " " * (end - start)

    def _error(self, message: str, token: Token, hint: str | None = None) -> None:
        self.errors.append(self.text.error(message, token.start, token.end, hint=hint))
