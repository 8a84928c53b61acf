"""Closures with intervals, kept and made anew, against closures made at each T by itself, over random streams."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution import kept
from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.ir.rules import RuleSet
from engine.plan import dataset
from engine.runtime.rows import facts_of, graph_table
from engine.timeline import MIN
from engine.worker import closures as states
from grammar.rif.parse import parse_rules
from grammar.rule_sets import parse_program
from grammar.statement import parse
from tests.differential.test_kept import E, G, R, S, events, rows
from tests.encoded import encode
from tests.examples import rotated, many

RDFS, OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SCHEMA = graph_table([(f"<{E}next>", TYPE, f"<{OWL}TransitiveProperty>"), (f"<{E}p>", f"<{RDFS}subPropertyOf>", f"<{E}v>"),
                      (f"<{E}q>", f"<{RDFS}subPropertyOf>", f"<{E}v>"), (f"<{E}q>", f"<{RDFS}domain>", f"<{E}Thing>"),
                      (f"<{E}n1>", f"<{E}next>", f"<{E}n3>")])
OWN = parse_rules(f"""Document( Group(
    Forall ?x ?y ?z ( ?x[<{E}next> -> ?z] :- And( ?x[<{E}next> -> ?y] ?y[<{E}next> -> ?z] ) )
    Forall ?x ?y ?a ( ?x[<{E}v> -> ?a] :- And( ?x[<{E}next> -> ?y] ?y[<{E}p> -> ?a] ) )
    Forall ?x ?y ?a ( ?x[<{E}Thing> -> ?y] :- And( ?x[<{E}q> -> ?a] ?y[<{E}q> -> ?a] ) ) ) )""", "text/x-rif-ps", "own")
RULES: Mapping[str, RuleSet] = {**BUILT_IN_RULES, "own": OWN}
STREAM = "FROM STREAM :s [RANGE 6s STEP 2s]"
USING = ("USING RULES owl2rl USING GRAPH :g", "USING RULES own", "USING RULES own USING GRAPH :g", "FROM :g USING RULES owl2rl")
QUERIES = {
    "pattern": f"SELECT ?x ?y ?a {STREAM} %s WHERE {{ ?x :next ?y . ?y :v ?a }}",
    "instances": f"CONSTRUCT {{ ?x :reaches ?y }} {STREAM} %s WHERE {{ ?x :next ?y }}",
    "count": f"SELECT ?x (COUNT(?y) AS ?n) {STREAM} %s WHERE {{ ?x :next ?y }} GROUP BY ?x HAVING (COUNT(?y) > 1)",
    "sum": f"SELECT (SUM(?a) AS ?n) {STREAM} %s WHERE {{ ?x :v ?a . FILTER(isNumeric(?a)) }}",
    "optional": f"SELECT ?x ?y ?a {STREAM} %s WHERE {{ ?x :next ?y OPTIONAL {{ ?y :v ?a FILTER(?a > 1) }} }}",
    "not exists": f"SELECT ?x ?y {STREAM} %s WHERE {{ ?x :next ?y FILTER NOT EXISTS {{ ?y :v ?a }} }}",
    "minus": f"SELECT ?x {STREAM} %s WHERE {{ ?x :v ?a MINUS {{ ?x :next ?y }} }}",
    "sub-query": f"SELECT ?x ?m {STREAM} %s WHERE {{ ?x :next ?y {{ SELECT ?y (MAX(?a) AS ?m) WHERE {{ ?y :v ?a }} GROUP BY ?y }} }}",
    "order": f"SELECT ?x ?y {STREAM} %s WHERE {{ ?x :next ?y }} ORDER BY ?y DESC(?x) LIMIT 3",
    "path": f"SELECT ?x ?a {STREAM} %s WHERE {{ ?x :next+/:v ?a }}",
    "all": f"SELECT ?s ?p ?o {STREAM} %s WHERE {{ ?s ?p ?o }}",
    "two streams": f"SELECT ?x ?y {STREAM} FROM STREAM :r [RANGE 9s STEP 2s] %s WHERE {{ ?x :next ?y }}",
    "named windows": "SELECT ?x ?a FROM NAMED WINDOW :w ON :s [RANGE 6s STEP 2s] FROM NAMED WINDOW :v ON :r [RANGE 9s STEP 2s] %s "
                     "WHERE { WINDOW :w { ?x :next ?y } WINDOW :v { ?y :v ?a } }",
    "unfolded": f"SELECT ?x ?a {STREAM} FROM :g USING RULES rdfs WHERE {{ ?x :v ?a }}",
    "disjoint windows": "SELECT ?x (COUNT(?y) AS ?n) FROM STREAM :s [RANGE 2s STEP 2s] %s WHERE { ?x :next ?y } GROUP BY ?x",
    "described": f"DESCRIBE ?x {STREAM} FROM NAMED WINDOW :w ON :s [RANGE 4s STEP 2s] %s "
                 f"WHERE {{ ?x :next ?y . WINDOW :w {{ ?x :v ?a }} }}",
    "window beside": f"SELECT ?x ?n {STREAM} FROM NAMED WINDOW :w ON :s [RANGE 4s STEP 2s] %s "
                     "WHERE { ?x :next ?y . { SELECT (COUNT(*) AS ?n) WHERE { WINDOW :w { ?x :next ?y } } } }",
}


def compiled(text: str) -> Compiled:
    catalog = Catalog({S: "event", R: "event"}, {G: SCHEMA}, RULES)
    return compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY q AS {text}"), catalog, "q")


@pytest.mark.soak
@pytest.mark.parametrize(("name", "using"), rotated(QUERIES, USING))
def test_what_is_kept_of_closures(name: str, using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_SEGMENTS", 4)
    text = QUERIES[name] % using if "%s" in QUERIES[name] else QUERIES[name]
    chance = random.Random(f"{name} {using}")
    own = {"incremental": compiled(text), "recompute": compiled(text)}
    with monkeypatch.context() as patched:
        patched.setattr(dataset, "TimeWindow", type(None))
        own["each T"] = compiled(text)
    keeping = own["incremental"].with_goal or own["incremental"]
    assert keeping.keeps_closures and not (own["each T"].with_goal or own["each T"]).keeps_closures, "one has intervals, the other has none"
    contents = {source.stream: StreamContent() for source in own["each T"].statement.streams}
    since, position = chance.choice((-1, 20)), 1
    with own_process(1) as process, own_process(1) as plain:
        ways = {"incremental": Executor(process, force_strategy="incremental"), "recompute": Executor(plain, force_strategy="recompute"),
                "each T": Executor(plain, force_strategy="recompute")}
        for step in range(many(6, 9)):
            for stream, content in contents.items():
                if made := [event for to, event in events(chance, step * 2_000, position) if to == stream]:
                    content.append(facts_of(encode(made)))
                position += 20
                content.evict((step - 6) * 2_000 if chance.random() < 0.9 else MIN)
            if chance.random() < 0.1:
                states._states(process._connections[0]).clear()     # the worker is another one
            ticks = tuple(2_000 * (step + more) for more in range(chance.choice((1, 1, 2, 4))))
            found = {way: executor.evaluate([Due("q", own[way], ticks, since, contents, {G: SCHEMA})]) for way, executor in ways.items()}
            for one, other, third in zip(*found.values(), strict=True):
                assert rows(one) == rows(third) and rows(other) == rows(third), (name, using, step, one.tick)
                assert one.inconsistencies == other.inconsistencies == third.inconsistencies
        assert ways["incremental"].choices["q"] == ("local", "incremental")
        for executor in ways.values():
            executor.close()


PROGRAM = f"""Document( Import(<{S}> <https://w3id.org/rsp/vocals#RDFStream>) Window 6 s Group(
    Forall ?x ?y ?z ( ?x[<{E}next> -> ?z] :- And( ?x[<{E}next> -> ?y] ?y[<{E}next> -> ?z] ) )
    Forall ?x ?a ( ?x[<{E}v> -> ?a] :- And( ?x[<{E}p> -> ?a] ?x[<{E}next> -> ?x] ) ) ) )"""


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_what_begins_in_a_program_that_is_kept(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prolongation is reported, whatever is merged, and however evaluations come together."""
    monkeypatch.setattr(kept, "MOST_SEGMENTS", 2)
    chance, content, position = random.Random(f"program {seed}"), StreamContent(), 1
    made = compile_statement(parse_program(PROGRAM, "text/x-rif-ps"), Catalog({S: "event"}), "q")
    with own_process(1) as one, own_process(1) as other:
        keeping, plain = Executor(one, force_strategy="incremental"), Executor(other, force_strategy="recompute")
        found = dict[str, list[object]](kept=[], plain=[])
        for step in range(20):
            if got := [event for to, event in events(chance, step * 2_000 + 3_000, position) if to == S]:
                content.append(facts_of(encode(got)))
            position += 20
            content.evict((step - 6) * 2_000)
            ticks = tuple(sorted({event.t + 1 for event in got if event.t >= 2_000 * step}))
            if ticks:
                for name, executor in (("kept", keeping), ("plain", plain)):
                    found[name] += [rows(answer) for answer in executor.evaluate([Due("q", made, ticks, -1, {S: content}, {})])]
        assert found["kept"] == found["plain"] and sum(map(bool, found["kept"])) > 20
        for executor in (keeping, plain):
            executor.close()
