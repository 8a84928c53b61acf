"""What a document says is data in the SQL of every plan, and code nowhere."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.ir.rules import OWL_RL, STREAM, RuleSet
from engine.ir.terms import RDF_TYPE, quote
from engine.records import Event, Triple
from engine.runtime.rows import facts_of, graph_table
from engine.sql import sources
from engine.sql.sources import stream_table
from grammar import parse
from grammar.rif.parse import parse_rules
from grammar.rif.xml import EXTENSION
from grammar.rule_sets import parse_program
from tests.encoded import encode

S, G, P, Q = "http://ex.org/s", "http://ex.org/g", "http://ex.org/p", "http://ex.org/q"
TEXT = f"""SELECT ?x ?p ?o FROM STREAM <{S}> [RANGE 2s STEP 1s] FROM <{G}> USING RULES attack
           WHERE {{ ?x ?p ?o }}"""
SEEN: Triple = ("<http://ex.org/a>", f"<{Q}>", '"seen"')


def rif(name: str, head: str) -> str:
    """RIF/XML with one rule of a name (an xs:string) and a property in its head."""
    def const(kind: str, text: str) -> str:
        space = "http://www.w3.org/2007/rif#iri" if kind == "iri" else "http://www.w3.org/2001/XMLSchema#string"
        return f'<Const type="{space}">{escape(text)}</Const>'

    def frame(property_: str) -> str:
        return (f'<Frame><object><Var>x</Var></object><slot ordered="yes">{const("iri", property_)}<Var>o</Var></slot></Frame>')

    return (f'<Document xmlns="http://www.w3.org/2007/rif#"><payload><Group><sentence><Forall><id>{const("string", name)}</id>'
            f'<declare><Var>x</Var></declare><declare><Var>o</Var></declare><formula><Implies><if>{frame(P)}</if><then>{frame(head)}'
            f'</then></Implies></formula></Forall></sentence></Group></payload></Document>')


def rules(name: str, head: str) -> RuleSet:
    return parse_rules(rif(name, head), "application/rif+xml", "attack")


@pytest.fixture
def executor() -> Iterator[Executor]:
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        yield executor
        executor.close()


def evaluated(executor: Executor, own: RuleSet) -> Answer:
    """The answer over a stream with one triple that the query asks for, and a graph with some of the rule's."""
    content, graphs = StreamContent(), {G: graph_table([("<http://ex.org/b>", f"<{P}>", '"known"')])}
    content.append(facts_of(encode([Event(1, S, 500, None, (SEEN,), 500)])))
    compiled = compile_statement(parse(TEXT), Catalog({S: "event"}, graphs, {"attack": own}), "q")
    [answer] = executor.evaluate([Due("q", compiled, (1000,), 0, {S: content}, graphs)])
    return answer


def shown(answer: Answer) -> list[Triple]:
    assert answer.table is not None, answer.error
    return sorted((row["x"], row["p"], row["o"]) for row in answer.table.to_pylist())


def expected(head: str) -> list[Triple]:
    """What is there, and what the rule derives from it."""
    return sorted([SEEN, ("<http://ex.org/b>", f"<{P}>", '"known"'), ("<http://ex.org/b>", f"<{head}>", '"known"')])


def marked(path: str) -> str:
    """Makes the file at `path` when a pickle of it is read."""
    return base64.b64encode(pickle.dumps(_Touch(path))).decode()


class _Touch:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (Path(self.path),)


SELECTED = "http://x')/**/UNION/**/ALL/**/SELECT/**/{0},{0},{0},{0},0,9000000000000000000{1}--"


@pytest.mark.parametrize("name", ["answer", "other"])
def test_a_rule_set_reads_no_file(executor: Executor, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    head = SELECTED.format("content", f"/**/FROM/**/read_text('{secret}')")
    assert shown(evaluated(executor, rules(name, head))) == expected(head)


@pytest.mark.parametrize("name", ["answer", "other"])
def test_a_rule_set_writes_no_file(executor: Executor, tmp_path: Path, name: str) -> None:
    written = tmp_path / "written"
    head = SELECTED.format("'a'", "").removesuffix("--") + f";COPY/**/(SELECT/**/1)/**/TO/**/'{written}'--"
    assert shown(evaluated(executor, rules(name, head))) == expected(head)
    assert not written.exists()


@pytest.mark.parametrize("name", ["answer", "other"])
def test_a_rule_set_runs_no_code(executor: Executor, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    head = SELECTED.format(f"tw_eval('{marked(str(run))}',0,CAST([]/**/AS/**/VARCHAR[]))", "")
    assert shown(evaluated(executor, rules(name, head))) == expected(head)
    assert not run.exists()


def test_a_literal_keeps_what_is_the_name_of_a_relation() -> None:
    """Relations of a query get names of its own by renaming; a text that looks like one is still a text."""
    names = [stream_table(S), sources.graph_table(G)]
    with own_process() as tasks:
        for strategy in ("incremental", "recompute"):
            executor = Executor(tasks, force_strategy=strategy)   # type: ignore[arg-type]
            own = parse_rules(f'Document( Group( Forall ?x ?o ( ?x[<{Q}> -> ?o] :- ?x[<{P}> -> ?o] ) ) )', "text/x-rif-ps", "own")
            graphs = {G: graph_table([("<http://ex.org/b>", f"<{P}>", quote(name)) for name in names])}
            compiled = compile_statement(parse(TEXT.replace("attack", "own")), Catalog({S: "event"}, graphs, {"own": own}), "q")
            for closing in compiled.text("local").closures:
                names.append(closing.name)
            text = TEXT.replace("attack", "own").replace("?o }", f"?o FILTER(?o IN ({', '.join(map(quote, names))})) }}")
            content = StreamContent()
            content.append(facts_of(encode([Event(1, S, 500, None, tuple((f"<urn:{n}>", f"<{P}>", quote(name))
                                                                         for n, name in enumerate(names)), 500)])))
            compiled = compile_statement(parse(text), Catalog({S: "event"}, graphs, {"own": own}), "q")
            [answer] = executor.evaluate([Due("q", compiled, (1000,), 0, {S: content}, graphs)])
            assert {o for _, _, o in shown(answer)} == set(map(quote, names)), strategy
            executor.close()


def test_a_query_may_have_any_name(executor: Executor) -> None:
    """Its relations have names made of a digest."""
    text = f"SELECT ?x ?o ?v FROM STREAM <{S}> [RANGE 2s STEP 1s] WHERE {{ ?x <{P}> ?o ; <{Q}> ?v }}"
    content = StreamContent()
    content.append(facts_of(encode([Event(1, S, 500, None, (("<urn:x>", f"<{P}>", '"o"'), ("<urn:x>", f"<{Q}>", '"v"')), 500)])))
    for name in ("a-b.c", "'; SELECT 1 --"):
        compiled = compile_statement(parse(text), Catalog({S: "event"}), name)
        [answer] = executor.evaluate([Due(name, compiled, (1000,), 0, {S: content}, {})])
        assert executor.choices[name] == ("local", "incremental")
        assert answer.table is not None and answer.table.num_rows == 1, answer.error


BUILT_IN_NAMES = ("answer", "magic", "schema", "rif:subclass", "rif:member", "eq-ref", "eq-rep-s", "cax-sco", "dt-type2", "prp-symp",
                  "rule 1")


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_a_rule_named_as_one_of_ours_is_a_document_s(executor: Executor, name: str) -> None:
    """What it derives in a program is shown, beside a profile whose rules have such names too."""
    [rule] = rules(name, Q).written
    assert rule.name == name and rule.role == "written" and not rule.is_built_in(name)
    imports = "".join(f"<directive><Import><location>{iri}</location><profile>{profile}</profile></Import></directive>"
                      for iri, profile in ((S, STREAM), (G, OWL_RL)))
    document = rif(name, Q).replace("<payload>", f'<Window xmlns="{EXTENSION}">1 s</Window>{imports}<payload>')
    content = StreamContent()
    content.append(facts_of(encode([Event(1, S, 500, None, (("<urn:x>", f"<{P}>", "<urn:o>"),), 500)])))
    statement, graphs = parse_program(document, "application/rif+xml"), {G: graph_table([("<urn:q>", RDF_TYPE, "<urn:C>")])}
    compiled = compile_statement(statement, Catalog({S: "event"}, graphs), "program")
    [answer] = executor.evaluate([Due("program", compiled, (501,), 0, {S: content}, graphs)])
    assert answer.table is not None, answer.error
    assert [(row["s"], row["p"], row["o"]) for row in answer.table.to_pylist()] == [("<urn:x>", f"<{Q}>", "<urn:o>")]


def test_numbers_of_heads_are_numbers(executor: Executor) -> None:
    """What a rule says of INF is SQL, too."""
    own = parse_rules(f'Document( Group( Forall ?x ?o ( ?x[<{Q}> -> "INF"^^xs:double] :- ?x[<{P}> -> ?o] ) ) )', "text/x-rif-ps", "attack")
    assert ("<http://ex.org/b>", f"<{Q}>", '"INF"^^<http://www.w3.org/2001/XMLSchema#double>') in shown(evaluated(executor, own))
