"""Programs that are not safe or not stratified, class by class, in both syntaxes: refused alike by ``PUT /rules/{name}`` and by
``thalweg run --rules``, with the variable or the cycle named, and the place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from engine.compiler import Catalog, compile_statement
from engine.ir.rules import TRIPLE, Atom, Negation, Rule, RuleSet
from engine.ir.spans import DiagnosticError, Span
from engine.ir.terms import Constant, Variable
from engine.runtime.stores import checked
from grammar import parse
from server.app import create_app
from server.cli import main
from server.web import Site
from tests.server.conftest import problem
from tests.unit.grammar.rif_xml import as_xml
from tests.unit.runtime.test_engine import EVENTS, Running

PS, XML = "text/x-rif-ps", "application/rif+xml"
ENDINGS = {PS: "rifps", XML: "rif"}
QUERY = """REGISTER QUERY q AS SELECT ?x ?o FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] USING RULES refused
WHERE { ?x <http://ex.org/p> ?o }"""

# What is refused stands between « and »: in RIF/XML it is the element of the same name.
UNSAFE = {
    "a variable of the head that the body has not": ("Forall ?x ?y (ex:p(?x «?y») :- ex:q(?x))", "y"),
    "a fact for everything": ("Forall ?x (ex:p(«?x»))", "x"),
    "a variable that only a built-in tests": (
        "Forall ?x (ex:p(?x) :- And(ex:q(?x) Exists ?y (External(pred:numeric-less-than(?x «?y»)))))", "y"),
    "a variable that only a function takes": (
        "Forall ?x ?y (ex:p(?y) :- And(ex:q(1) ?y = External(func:numeric-add(«?x» 1))))", "x"),
    "a built-in with two binding patterns, and neither side bound": (
        "Forall ?x ?y (ex:p(1) :- External(pred:iri-string(«?x» ?y)))", "x"),
    "an equality of two variables, neither bound": ("Forall ?x ?y (ex:p(1) :- And(ex:q(1) «?x» = ?y))", "x"),
    "equalities that bind each other in a ring": (
        "Forall ?x ?y (ex:p(1) :- And(«?x» = External(func:not(?y)) ?y = External(func:not(?x))))", "x"),
    "one alternative of several": ("Forall ?x (ex:p(«?x») :- Or(ex:q(?x) ex:r(1)))", "x"),
    "a variable of Exists that has the name of a bound one": (
        "Forall ?x (ex:p(?x) :- And(ex:q(?x) Exists ?x (External(pred:is-list(«?x»)))))", "x"),
    "a function's argument in an atom of the body": ("Forall ?x (ex:p(1) :- ex:q(External(func:numeric-add(«?x» 1))))", "x"),
    "a function's argument in the head": ("Forall ?x ?y (ex:p(External(func:numeric-add(«?y» 1))) :- ex:q(?x))", "y"),
    "the subject of a frame in the head": ("Forall ?s ?o («?s»[ex:p -> ?o] :- ex:q(?o))", "s"),
}


def document(rule: str) -> str:
    """A document with the rule in its third line."""
    return f"Document(Prefix(ex <http://ex.org/>)\n Group(\n  {rule}\n))"


def written(rule: str, media: str) -> str:
    """A rule of UNSAFE as a document of this type."""
    text = document(rule.replace("«", "").replace("»", ""))
    return text if media == PS else as_xml(text, "refused")


def place(rule: str, variable: str, media: str) -> tuple[int, int, str]:
    """Line, column and text of what is refused."""
    if media == PS:
        return 3, rule.index("«") + 3, f"?{variable}"
    marked = as_xml(document(rule.replace(f"«?{variable}»", "?marked")), "refused")
    return marked[:marked.index("<Var>marked</Var>")].count("\n") + 1, 1, f"<Var>{variable}</Var>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """Requests into a site around a real engine, with the parser of RIF; nothing that is refused leaves a trace there."""
    with Running(tmp_path_factory.mktemp("data")) as running:
        running.engine.put_stream("s", EVENTS)
        yield create_app(running.engine, Site(running.engine)).test_client()


def run(text: str, media: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What ``thalweg run`` says of a rule set that it refuses."""
    rules, query = folder / f"refused.{ENDINGS[media]}", folder / "q.rq"
    rules.write_text(text, "utf-8")
    query.write_text(QUERY, "utf-8")
    assert main(["run", str(query), "--rules", f"refused={rules}", "--explain", "logical"]) == 1
    told = capsys.readouterr()
    assert not told.out and "Traceback" not in told.err
    return told.err


@pytest.mark.parametrize("media", [PS, XML], ids=["presentation", "xml"])
@pytest.mark.parametrize("kind", UNSAFE)
def test_unsafe_rules_are_refused_with_the_variable(kind: str, media: str, client: FlaskClient, tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    rule, variable = UNSAFE[kind]
    text = written(rule, media)
    line, column, marked = place(rule, variable, media)
    errors = problem(client.put("/rules/refused", data=text, content_type=media), 422, "rules-unsafe")["errors"]
    error, = [e for e in errors if (e["location"]["line"], e["location"]["column"]) == (line, column)]
    assert error["detail"].startswith(f"Nothing binds ?{variable}:") and f"hold ?{variable}" in error["hint"]
    row, carets = error["snippet"].split("\n")
    assert row[carets.index("^"):].startswith(marked) and carets.count("^") == len(marked)
    problem(client.get("/rules/refused"), 404, "no-such-rules")
    told = run(text, media, tmp_path, capsys)
    assert f"line {line}, column {column}: {error['detail']}\n{error['snippet']}\nhint: {error['hint']}" in told


NEGATED = "Forall ?x (ex:p(?x) :- And(ex:q(?x) Naf ex:p(?x)))"
NEGATION = {
    PS: document(NEGATED),
    XML: as_xml(document(NEGATED.replace("Naf ex:p(?x)", "Exists ?naf (ex:p(?x))")), "refused").replace("Exists>", "Naf>").replace(
        "<declare>\n<Var>naf</Var>\n</declare>\n", ""),
}


@pytest.mark.parametrize("media", [PS, XML], ids=["presentation", "xml"])
def test_negation_is_refused_by_name(media: str, client: FlaskClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """RIF-Core has none, so that no program of its own can depend on its negation."""
    text = NEGATION[media]
    line = text.count("\n", 0, text.index("Naf")) + 1
    error = problem(client.put("/rules/refused", data=text, content_type=media), 422, "rif-feature-not-core")["errors"][0]
    assert error["detail"].startswith("Naf (negation)") and error["location"]["line"] == line
    assert f"line {line}, column {error['location']['column']}: {error['detail']}" in run(text, media, tmp_path, capsys)


# --- programs of the one rule language that have no strata

TEXT = "line one\nthe rule with the negation\nanother rule"
X, Y = Variable("x"), Variable("y")


def triple(property_: str) -> Atom:
    return Atom(TRIPLE, (X, Constant(f"<{property_}>"), Y))


def negating(head: Atom, *body: Atom | Negation) -> Rule:
    """A rule whose text is the second line of TEXT."""
    return Rule(head, body, span=Span(TEXT, 9, 35))


def rule(head: Atom, *body: Atom | Negation) -> Rule:
    """A rule whose text is the third line of TEXT."""
    return Rule(head, body, span=Span(TEXT, 36, 48))


ANY = Atom(TRIPLE, (X, Variable("p"), Y))
UNSTRATIFIED = {
    "of itself": ([negating(triple("a"), triple("b"), Negation(triple("a")))], "<a> -> <a>"),
    "through another rule": ([rule(triple("c"), triple("a")), negating(triple("a"), triple("b"), Negation(triple("c")))],
                             "<a> -> <c> -> <a>"),
    "through two others": ([rule(triple("c"), triple("d")), rule(triple("d"), triple("a"), triple("b")),
                            negating(triple("a"), triple("b"), Negation(triple("c")))], "<a> -> <c> -> <d> -> <a>"),
    "of a recursive predicate": ([rule(triple("a"), triple("a"), triple("b")), rule(triple("c"), triple("a")),
                                  negating(triple("a"), triple("b"), Negation(triple("c")))], "<a> -> <c> -> <a>"),
    "twice along the way": ([negating(triple("a"), triple("b"), Negation(triple("c"))),
                             Rule(triple("c"), (triple("b"), Negation(triple("a"))), span=Span(TEXT, 9, 35))], "<a> -> <c> -> <a>"),
    "of a triple with any property": ([negating(triple("a"), triple("b"), Negation(ANY))], "<a> -> <a>"),
    "by a head with any property": ([rule(ANY, triple("a"), Atom("known", (Variable("p"),))),
                                     negating(triple("a"), triple("b"), Negation(triple("c")))], "<a> -> triple -> <a>"),
    "of other facts": ([rule(Atom("q", (X,)), Atom("r", (X,))), negating(Atom("r", (X,)), triple("b"), Negation(Atom("q", (X,))))],
                       "r -> q -> r"),
    "between triples and other facts": ([rule(Atom("q", (X,)), triple("a")), negating(triple("a"), triple("b"), Negation(Atom("q", (X,))))],
                                        "<a> -> q -> <a>"),
    "of a fact without arguments": ([rule(Atom("alarm", ()), triple("a")), negating(triple("a"), triple("b"), Negation(Atom("alarm", ())))],
                                    "<a> -> alarm -> <a>"),
}


@pytest.mark.parametrize("kind", UNSTRATIFIED)
def test_programs_that_depend_on_their_own_negation_name_the_cycle(kind: str) -> None:
    rules, cycle = UNSTRATIFIED[kind]
    with pytest.raises(DiagnosticError) as caught:
        checked(RuleSet("refused", tuple(rules)))
    found, = caught.value.diagnostics
    assert found.code == "rules-unsafe" and found.message == f"The rules cannot be stratified: a cycle through negation: {cycle}."
    assert found.render().startswith("line 2, column 1:") and found.hint


def test_sets_that_have_strata_apart_may_have_none_together() -> None:
    rules, cycle = UNSTRATIFIED["through another rule"]
    sets = {"one": checked(RuleSet("one", (rules[0],))), "two": checked(RuleSet("two", (rules[1],)))}
    text = QUERY.replace("USING RULES refused", "USING RULES one, two")
    with pytest.raises(DiagnosticError) as caught:
        compile_statement(parse(text), Catalog({"http://ex.org/s": "event"}, {}, sets))
    found, = caught.value.diagnostics
    assert cycle in found.message and found.span is not None and text[found.span.start:].startswith("one")
