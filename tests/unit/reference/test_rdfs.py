"""The RDFS closure rule by rule, and what a query sees of it."""

from __future__ import annotations

import pytest

from engine.ir.terms import RDF, RDFS
from engine.records import Triple
from engine.reference.dataset import Content, Dataset, Graph
from engine.reference.entailment import entail, rdfs_closure as closure

NAMES = {"a": f"<{RDF}type>", "sc": f"<{RDFS}subClassOf>", "sp": f"<{RDFS}subPropertyOf>", "dom": f"<{RDFS}domain>",
         "ran": f"<{RDFS}range>", "prop": f"<{RDF}Property>", "class": f"<{RDFS}Class>"}


def triples(*texts: str) -> frozenset[Triple]:
    found = [tuple(NAMES.get(t, t if t[0] in '_"' else f"<{t}>") for t in text.split()) for text in texts]
    return frozenset(found)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "derived"), [
    (["p dom C", "x p y"], ["x a C", "p sp p", "C sc C"]),
    (["p ran C", "x p y"], ["y a C", "p sp p", "C sc C"]),
    (["p sp q", "q sp r"], ["p sp r", "p sp p", "q sp q", "r sp r"]),
    (["p sp q", "x p y"], ["x q y", "p sp p", "q sp q"]),
    (["A sc B", "x a A"], ["x a B", "A sc A", "B sc B"]),
    (["A sc B", "B sc C"], ["A sc C", "A sc A", "B sc B", "C sc C"]),
    (["p sp q", "q dom A", "A sc B", "x p y"], ["x q y", "x a A", "x a B", "p sp p", "q sp q", "A sc A", "B sc B"]),
    (["A sc B", "B sc A", "x a A"], ["A sc A", "B sc B", "x a B"]),
    (["mine sp dom", "p mine C", "x p y"], ["p dom C", "x a C", "mine sp mine", "dom sp dom", "p sp p", "C sc C"]),
    (["p ran C", 'x p "literal"'], ["p sp p", "C sc C"]),
    (["p sp _:b", "x p y"], ["p sp p", "_:b sp _:b"]),
    (["p a prop", "C a class"], ["p sp p", "C sc C"]),
])
def test_closure(given: list[str], derived: list[str]) -> None:
    assert closure(Graph(triples(*given))).triples - triples(*given) == triples(*derived)


def test_a_window_is_what_it_adds_to_its_background() -> None:
    tbox = Graph(triples("A sc B", "B sc C"))
    window = Content(Graph(triples("x a A", "A sc B")), {"<g>": Graph(triples("x a A"))})
    seen = entail(Dataset(tbox, {}, {"<w>": window}), tbox, Graph(), closure)
    added = triples("x a A", "x a B", "x a C")
    assert seen.windows["<w>"].graph.triples == added
    assert seen.windows["<w>"].items["<g>"].triples == added
    assert seen.default.triples == triples("A sc B", "B sc C", "A sc C", "A sc A", "B sc B", "C sc C")


def test_the_default_graph_is_closed_with_unnamed_windows() -> None:
    tbox = Graph(triples("A sc B"))
    seen = entail(Dataset(Graph(tbox.triples | triples("x a A"))), tbox, Graph(), closure)
    assert seen.default.triples == triples("A sc B", "x a A", "x a B", "A sc A", "B sc B")


def test_using_graph_is_for_reasoning_only() -> None:
    """Its triples and what follows from them alone are no answers, unless they are known without it."""
    reasoning = Graph(triples("A sc B", "B sc C", "y a A"))
    seen = entail(Dataset(Graph(triples("x a A", "A sc B"))), Graph(), reasoning, closure)
    assert seen.default.triples == triples("x a A", "x a B", "x a C", "A sc B", "A sc A", "B sc B")


def test_named_graphs_are_closed_with_the_background() -> None:
    tbox = Graph(triples("A sc B"))
    seen = entail(Dataset(tbox, {"<g>": Graph(triples("x a A"))}), tbox, Graph(), closure)
    assert seen.named["<g>"].triples == triples("x a A", "x a B")
