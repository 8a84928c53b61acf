"""What a document says is data in the SQL of every plan, and code nowhere."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from engine.compiler import Catalog, compile_statement
from engine.ir.rules import RuleSet
from engine.records import Event, Triple
from engine.runtime.rows import encode, facts_of, graph_table
from engine.spark.content import StreamContent
from engine.spark.executor import Answer, Due, Executor
from grammar import parse
from grammar.rif import parse_rules
from tests.differential.plans import here

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
    with here() as session:
        executor = Executor(session, force_executor="local", force_strategy="incremental")
        yield executor
        executor.close()


def evaluated(executor: Executor, own: RuleSet) -> Answer:
    """The answer over a stream with one triple that the query asks for, and a graph with some of the rule's."""
    content, graphs = StreamContent(S), {G: graph_table([("<http://ex.org/b>", f"<{P}>", '"known"')])}
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
