"""Statements, rule sets and graphs of hostile words, and the SQL of their plans: from any seed, in every language.

A case is made twice, of hostile words and of harmless ones of the same kinds and lengths, so that both have the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

from engine.compiler import Catalog, compile_statement
from engine.execution.compiled import Compiled
from engine.execution.kept import KeptClosures
from engine.ir.rules import STREAM
from engine.ir.terms import RDF_TYPE, RDFS, quote
from engine.records import Triple
from engine.rewrite.owl2rl import BUILT_IN
from engine.runtime.rows import graph_table
from engine.sql.closing import Closing, seen_text
from engine.sql.dialect import DIALECTS
from engine.sql.sources import Evaluation, source_texts, stream_table
from grammar import parse
from grammar.rif.parse import parse_rules
from grammar.rif.xml import EXTENSION
from grammar.rule_sets import parse_program

PS, XML = "text/x-rif-ps", "application/rif+xml"
RIF, XS = "http://www.w3.org/2007/rif#", "http://www.w3.org/2001/XMLSchema#"
PIECES = (
    "'", "''", "\\", "\\'", '"', "\\\"", "\\101", "\\u0041", "\\x41", "${x}", "$${", "{0}", "%s", "--", "/*", "*/", ";", "\n", "\r", "\t",
    "\x01", "\x7f", "\ufeff", "\ufffe", "\U0001f600", "e\u0301", "\u2019", "\uff07", "\u02bc", "`", "$$", "E'", "X'", "?", ":x", "#", "@en",
    "^^<x>", "<", ">", "_", "\u0130", "\u00df", "\u200b", "\u2028", " OR 1=1 ", "'); DROP TABLE ticks; --", "' UNION SELECT 1 --",
    "tw_eval(", "c_0123456789abcdef", "x0", "ticks", "a", "Z", "9")
NOT_IN_IRIS = frozenset(map(chr, range(33))) | frozenset('<>"{}|^`\\\x7f\ufffe\uffff')
TAGS = ("en", "de-CH", "x-y", "a", "zh-Hant-TW")


@dataclass(frozen=True)
class Words:
    """Each begins with letters and a number of its own, by which both kinds of words have one order and are told from all others."""

    iri: tuple[str, ...]
    text: tuple[str, ...]
    tag: tuple[str, ...]
    name: str


def hostile(random: Random) -> Words:
    """Words that look like SQL, like escapes, or like nothing at all."""
    def word(most: int = 4) -> str:
        return "".join(random.choice(PIECES) if random.random() < 0.8 else any_character() for _ in range(random.randint(1, most)))

    def any_character() -> str:
        return chr(random.choice((random.randrange(1, 0xD800), random.randrange(0xE000, 0x110000))))

    def in_iri() -> str:
        return "".join(c for c in word(5) if c not in NOT_IN_IRIS)

    return Words(tuple(f"http://i{n}.ex/{in_iri()}" for n in range(10)), tuple(f"w{n}w{word()}" for n in range(8)),
                 tuple(random.choice(TAGS) for _ in range(3)), f"name-{word()}")


def harmless(words: Words) -> Words:
    """Words of the same lengths, with escapes, letters beyond ASCII, and characters that no XML holds, where the others have some."""
    return Words(tuple(map(_plain, words.iri)), tuple(map(_plain, words.text)), words.tag, _plain(words.name))


def _plain(word: str) -> str:
    def plain(c: str) -> str:
        if in_xml(c) != c:      # a rule in XML loses it, and what it says no longer fits the query
            return "\x01" if c.isascii() else "\uffff"
        if quote(c) != f'"{c}"':
            return "\t"
        return (c if c.isalnum() or c in ":/." else "x") if c.isascii() else "\u00e9"
    return "".join(map(plain, word))


@dataclass(frozen=True)
class Case:
    """A text of a language with the rule set that it uses and its graph; `media` of a rule program."""

    text: str
    rules: tuple[str, str] | None = None
    graph: tuple[Triple, ...] = ()
    media: str = ""


def case(random: Random, words: Words) -> Case:
    """A case of one language; the same for the same state of `random`, but for the words."""
    return random.choice(LANGUAGES)(random, _Writer(random, words))


class _Writer:
    """Writes words into the languages."""

    def __init__(self, random: Random, words: Words) -> None:
        self.random, self.words = random, words

    def iri(self, n: int) -> str:
        return f"<{self.words.iri[n]}>"

    def literal(self) -> str:
        """As SPARQL, Turtle and RIF's presentation syntax write it."""
        n = self.random.randrange(len(self.words.text))
        ends = ("", "", f"@{self.random.choice(self.words.tag)}", f"^^{self.iri(9)}")
        return quote(self.words.text[n]) + self.random.choice(ends)

    def term(self) -> str:
        return self.literal() if self.random.random() < 0.6 else self.iri(self.random.randrange(5, 10))

    def text(self) -> str:
        return quote(self.random.choice(self.words.text))

    def test(self, v: str = "?o") -> str:
        """A condition over a variable."""
        one, two, text = self.term(), self.term(), self.text()
        return self.random.choice((
            f"{v} = {one}", f"{v} != {one}", f"{v} < {self.text()}", f"{v} IN ({one}, {two}, {text})", f"{v} NOT IN ({one}, {two})",
            f"CONTAINS(STR({v}), {text})", f"STRSTARTS({v}, {self.literal()})", f"STRENDS(UCASE(STR({v})), {text})",
            f"SAMETERM({v}, {one})", f"LANGMATCHES(LANG({v}), {text})", f"REPLACE(STR({v}), {text}, {self.text()}) = {text}",
            f"IF({v} = {one}, {two}, {text}) = {text}", f"STRBEFORE({v}, {text}) = {text} || STRAFTER({v}, {text}) = {text}",
            f"{v} = STRLANG({text}, {quote(self.words.tag[0])})", f"STRDT({text}, {self.iri(9)}) = {v}", f"CONCAT({v}, {text}) = {text}",
            f"COALESCE({v}, {one}) = {two} && ! ({v} = {one})", f"{self.iri(8)}({v}, {one})"))

    def value(self, v: str = "?o") -> str:
        text = self.text()
        return self.random.choice((self.term(), f"CONCAT(STR({v}), {self.literal()})", f"STRAFTER({v}, {text})", f"BNODE({text})",
                                   f"COALESCE({v}, {self.term()})", f"IRI(CONCAT(STR({v}), {text}))", f"STRLANG({text}, \"en\")"))


def _sparql(random: Random, w: _Writer) -> Case:
    source = random.choice((f"FROM STREAM {w.iri(0)} [RANGE 2s STEP 1s] FROM {w.iri(1)}", f"FROM STREAM {w.iri(0)} [RANGE 3s STEP 1s]",
                            f"FROM STREAM {w.iri(0)} [TRIPLES 5] FROM NAMED {w.iri(1)}"))
    more = "".join(random.sample((
        f" OPTIONAL {{ ?s {w.iri(4)} ?x FILTER({w.test('?x')}) }}", f" MINUS {{ ?s {w.iri(5)} {w.term()} }}", f" BIND({w.value()} AS ?b)",
        f" FILTER({w.test()})", f" FILTER NOT EXISTS {{ ?s {w.iri(6)} ?o FILTER({w.test()}) }}",
        f" VALUES ?o {{ {w.term()} {w.term()} UNDEF }}",
        f" {{ ?s {w.iri(7)} ?y }} UNION {{ ?s {w.iri(8)} {w.term()} }}", f" ?s {w.iri(4)}+ ?z .",
        f" {w.iri(5)} ({w.iri(6)}|^{w.iri(7)})* ?o ."),
        random.randint(1, 4)))
    where = f"WHERE {{ ?s {w.iri(2)} ?o ; {w.iri(3)} {w.term()} .{more} }}"
    form = random.choice((
        f"SELECT * {source} {where}", f"SELECT DISTINCT ?s ({w.value()} AS ?v) {source} {where} ORDER BY ?o LIMIT 3",
        f"ASK {source} {where}",
        f"SELECT ?s (GROUP_CONCAT(?o; SEPARATOR={w.text()}) AS ?t) (MIN(?o) AS ?m) {source} {where} GROUP BY ?s HAVING({w.test('?t')})",
        f"CONSTRUCT {{ ?s {w.iri(9)} {w.term()} . [] {w.iri(8)} ?o }} {source} {where}",
        f"DESCRIBE ?s {w.iri(7)} {source} {where}"))
    return Case(f"REGISTER QUERY q AS {form}")


def _star(random: Random, w: _Writer) -> Case:
    """What can be kept with its intervals."""
    return Case(f"SELECT ?s ?o FROM STREAM {w.iri(0)} [RANGE 2s STEP 1s] WHERE {{ ?s {w.iri(2)} ?o ; {w.iri(3)} ?x ; {w.iri(4)} {w.term()} "
                f"FILTER({w.test()}) FILTER({w.test('?x')}) }}")


def _windows(random: Random, w: _Writer) -> Case:
    """RSP-QL: windows by name."""
    return Case(f"REGISTER RSTREAM {w.iri(9)} AS SELECT ?s (WINDOW_OPEN({w.iri(4)}) AS ?w) "
                f"FROM NAMED WINDOW {w.iri(4)} ON {w.iri(0)} [RANGE PT2S STEP PT1S] FROM {w.iri(1)} "
                f"WHERE {{ WINDOW {w.iri(4)} {{ ?s {w.iri(2)} ?o GRAPH {w.iri(5)} {{ ?o {w.iri(6)} {w.term()} }} FILTER({w.test()}) }} "
                f"OPTIONAL {{ ?s {w.iri(3)} {w.term()} }} }}")


def _body(random: Random, w: _Writer) -> str:
    """A body of the presentation syntax over ?s and ?o."""
    tested = random.choice((f"External(pred:contains(?o {w.text()}))", f"?o = {w.literal()}",
                            f"External(pred:literal-not-identical(?o {w.text()}))", f"?o = External(func:concat({w.text()} {w.text()}))"))
    return random.choice((f"?s[{w.iri(2)} -> ?o]", f"And( ?s[{w.iri(2)} -> ?o] ?s[{w.iri(3)} -> {w.literal()}] )",
                          f"And( ?s[{w.iri(2)} -> ?o] {tested} )", f"And( {w.iri(6)}(?s ?o {w.literal()}) ?s[{w.iri(3)} -> ?o] )"))


def _rules_ps(random: Random, w: _Writer, imports: str = "", window: str = "") -> str:
    return f"""Document( {imports} {window} Group(
      (* {w.iri(random.randrange(10))} *) Forall ?s ?o ( ?s[{w.iri(4)} -> ?o] :- {_body(random, w)} )
      Forall ?s ?o ( ?s[{w.iri(5)} -> {w.literal()}] :- {_body(random, w)} )
      Forall ?s ?o ?x ( ?s[{w.iri(4)} -> ?x] :- And( ?s[{w.iri(4)} -> ?o] ?o[{w.iri(4)} -> ?x] ) )
      Forall ?s ?o ( {w.iri(6)}(?s ?o {w.literal()}) :- {_body(random, w)} )
      {w.iri(7)}[{w.iri(2)} -> {w.literal()}]
      {w.iri(6)}({w.iri(8)} {w.literal()} {w.literal()}) ) )"""


def _const(text: str, kind: str = f"{XS}string") -> str:
    return f'<Const type="{kind}">{escape(in_xml(text))}</Const>'


def _rules_xml(random: Random, w: _Writer, imports: str = "") -> str:
    """Rules whose names are any text."""
    def iri(n: int) -> str:
        return _const(w.words.iri[n], f"{RIF}iri")

    def frame(property_: str, value: str = "<Var>o</Var>") -> str:
        return f'<Frame><object><Var>s</Var></object><slot ordered="yes">{property_}{value}</slot></Frame>'

    def rule(name: str, head: str, body: str) -> str:
        return (f'<sentence><Forall><id>{_const(name)}</id><declare><Var>s</Var></declare><declare><Var>o</Var></declare><formula><Implies>'
                f'<if>{body}</if><then>{head}</then></Implies></formula></Forall></sentence>')

    names = random.choice(((w.words.name, "answer"), ("eq-ref", w.words.name), (w.words.text[0], w.words.text[0])))
    tagged = f'<Const xml:lang="{w.words.tag[1]}">{escape(in_xml(w.words.text[1]))}</Const>'
    other = random.choice((tagged, _const(w.words.text[2])))
    both = f"<And><formula>{frame(iri(2))}</formula><formula>{frame(iri(4), other)}</formula></And>"
    return (f'<Document xmlns="{RIF}">{imports}<payload><Group>{rule(names[0], frame(iri(4)), frame(iri(2)))}'
            f'{rule(names[1], frame(iri(5), _const(w.words.text[3])), both)}</Group></payload></Document>')


def in_xml(text: str) -> str:
    """The text without characters that no XML holds."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 and c not in "\ufffe\uffff" else "?" for c in text)


def _using(random: Random, w: _Writer) -> Case:
    """A query under rules, of a few properties or of all, over a stream and a graph."""
    rules = random.choice(((PS, _rules_ps), (XML, _rules_xml)))
    pattern = random.choice(("?s ?p ?o", f"?s {w.iri(4)} ?o", f"?s {w.iri(5)} {w.term()} ; {w.iri(4)} ?o"))
    graph = random.choice(("", f"FROM {w.iri(1)} "))
    return Case(f"SELECT * FROM STREAM {w.iri(0)} [RANGE 2s STEP 1s] {graph}USING RULES own WHERE {{ {pattern} FILTER({w.test()}) }}",
                (rules[0], rules[1](random, w)), ((w.iri(7), w.iri(2), quote(w.words.text[4])), (w.iri(8), w.iri(4), w.iri(9))))


def _entailed(random: Random, w: _Writer) -> Case:
    """A query under a schema, which is partially evaluated."""
    graph = [(w.iri(2), f"<{RDFS}subClassOf>", w.iri(3)), (w.iri(4), f"<{RDFS}subPropertyOf>", w.iri(5)),
             (w.iri(4), f"<{RDFS}domain>", w.iri(2)), (w.iri(6), f"<{RDFS}subClassOf>", w.iri(2))]
    return Case(f"SELECT * FROM STREAM {w.iri(0)} [RANGE 2s STEP 1s] FROM {w.iri(1)} USING RULES rdfs "
                f"WHERE {{ ?s a {w.iri(3)} ; {w.iri(5)} ?o FILTER({w.test()}) }}", graph=tuple(graph))


def _program(random: Random, w: _Writer) -> Case:
    """A rule program."""
    if random.random() < 0.5:
        imports = f"Import({w.iri(0)} <{STREAM}>) Import({w.iri(1)} <http://www.w3.org/ns/entailment/RDFS>)"
        return Case(_rules_ps(random, w, imports, "Window(2 s)"), media=PS, graph=((w.iri(7), RDF_TYPE, w.iri(2)),))
    imports = (f'<Window xmlns="{EXTENSION}">2 s</Window><directive><Import><location>{escape(w.words.iri[0])}</location>'
               f'<profile>{STREAM}</profile></Import></directive>')
    return Case(_rules_xml(random, w, imports), media=XML)


LANGUAGES: tuple[Callable[[Random, _Writer], Case], ...] = (_sparql, _sparql, _star, _windows, _using, _using, _entailed, _program)


def compiled(case: Case, words: Words) -> Compiled:
    """The case's statement; raises DiagnosticError for one that is refused."""
    statement = parse_program(case.text, case.media) if case.media else parse(case.text)
    rules = {**BUILT_IN, **({"own": parse_rules(case.rules[1], case.rules[0], "own")} if case.rules else {})}
    graphs = {words.iri[1]: graph_table(list(case.graph))}
    return compile_statement(statement, Catalog({words.iri[0]: "event"}, graphs, rules), words.name, "logical")


def statements(compiled: Compiled, folder: Path, kinds: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, str]]:
    """Every text that the plans of a statement may run, with the name of its dialect; `kinds` are executors, and whether values are
    compared by their types."""
    windows = compiled.statement.windows
    evaluation = Evaluation((1000, 2000), 0, compiled.statement.on_change, compiled.statement.start_at_ms, False)
    for executor, typed in kinds:
        dialect = DIALECTS[executor]
        text = compiled.text(executor, typed)
        prefix = source_texts(text.sources, windows, evaluation, dialect)
        yield executor, text.statement(prefix)
        for rounds in text.rounds:
            yield from ((executor, part) for part in text.pairs(prefix, rounds))
        for closure in text.closures:
            made = closure.ready(source_texts(closure.source.base, windows, evaluation, dialect))
            yield from ((executor, part) for part in _texts(made))
        if compiled.sampled is not None and executor == "local":
            sampled = compiled.text(executor, typed, "sampled")
            panes = [one.text(windows, evaluation) for one in sampled.panes]
            yield executor, sampled.statement([*source_texts(sampled.sources, windows, evaluation, dialect), *panes])
            for table in (one.table(windows) for one in sampled.panes):
                yield from ((executor, part) for part in (table.empty, table.added, table.least))
            for written in compiled.kept_texts(sampled, typed):
                yield from ((executor, part) for part in (written.whole, *written.once, *written.again))
                for delta in (each for one in written.deltas for each in (one, one.alone and one.alone[1]) if each):
                    yield from ((executor, part) for part in (*delta.parts.values(), delta.joined))
        answering = compiled.with_goal or compiled
        if answering.keeps_closures and executor == "local":
            tables = {source.stream: stream_table(source.stream) for source in windows}
            asked = answering.with_own_closures("k1", static=False).text(executor, typed)
            kept = KeptClosures(answering, folder, "k1")
            for closing in [kept.closing(text, evaluation, tables) for text in asked.closures]:
                yield from ((executor, part) for part in _texts(closing))
            yield executor, asked.statement(source_texts(asked.sources, windows, evaluation, dialect))


def _texts(closing: Closing) -> Iterator[str]:
    yield closing.first
    yield seen_text(closing.new)
    for stratum in closing.strata:
        yield f"{closing.before}{' UNION ALL '.join(step.text for step in stratum.steps)}{closing.after}"
    if closing.checks:
        yield f"{closing.known} SELECT * FROM ({' UNION '.join(check.text for check in closing.checks)}) AS found"
    if closing.kept is not None:
        yield closing.kept.all_text(closing, "replaced")
