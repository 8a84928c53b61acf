"""The lines before the rules of a Datalog text that say what it reads: ``PREFIX ex: <...>``, ``FROM STREAM <iri>``, ``FROM <graph>``."""

from __future__ import annotations

from engine.ir.rules import SIMPLE, STREAM, Import
from grammar.datalog.reader import AtomReader

AFTER_A_PREDICATE = ("(", ".", ",", "<-", "\u2190", ":-", "@")
"""What follows a predicate, never the first word of a line before the rules: ``from(a, b).`` is a fact."""


class SourceReader(AtomReader):
    """Reads such lines; a language adds its own by `directive`."""

    directives: tuple[str, ...] = ("PREFIX", "FROM")

    def sources(self) -> tuple[Import, ...]:
        """All lines before the first rule; a stream is imported under the profile STREAM, a graph under SIMPLE."""
        imports: list[Import] = []
        while self.at_directive():
            start = self.token.start
            word = self.next().text.upper()
            if word == "PREFIX":
                self._prefix()
            elif word == "FROM":
                profile = STREAM if self.token.word == "STREAM" and self.next() else SIMPLE
                imports.append(Import(self.iri("STREAM or an IRI" if profile == SIMPLE else "an IRI such as <http://ex.org/s>"),
                                      profile, self.span(start)))
            else:
                self.directive(word, start)
        return tuple(imports)

    def at_directive(self) -> bool:
        """Whether such a line begins here: its word in any case, and not used as a predicate."""
        follows = self.after.kind == "mark" and self.after.text in AFTER_A_PREDICATE or self.after.kind == "eof"
        return self.token.word in self.directives and not follows

    def directive(self, word: str, start: int) -> None:
        """A line of the language's own, after its first word, which stands at `start`."""
        raise NotImplementedError

    def _prefix(self) -> None:
        token = self.token
        self._unknown.add(token.text.rstrip(":"))        # of a declaration that cannot be read, one mistake is told
        if token.kind != "name" or not token.text.endswith(":") or token.text.count(":") != 1:
            self.fail("a prefix with its colon", f"a prefix ends with a colon: PREFIX {token.text if token.kind == 'word' else 'ex'}: "
                      "<http://ex.org/>")
        self.next()
        if self.token.kind != "iri":
            self.fail("an IRI such as <http://ex.org/>", "the IRI stands in angle brackets and begins with its scheme")
        self.prefixes[token.text[:-1]] = self.next().text[1:-1]
