"""A folder of SPARQL tests: evaluation tests from its ``index.json``, syntax tests from the manifests (``manifest*.ttl``) in it.

A record of the index names files relative to the folder: `query`, `data` (the default graph), `graphData` (named graphs: a path, or a
path with the name) and `result`. All else may be missing. Relative IRIs are resolved as if the folder stood at BASE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyoxigraph

BASE = "http://example.org/"
TESTS = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_TYPE = pyoxigraph.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_SYNTAX = {"PositiveSyntaxTest": True, "PositiveSyntaxTest11": True, "NegativeSyntaxTest": False, "NegativeSyntaxTest11": False}


@dataclass(frozen=True, slots=True)
class EvaluationTest:
    """One record. `default` and `named` (by IRI) are the files of its dataset; `form` None: as the query says."""

    case: str
    folder: Path
    query: Path
    default: tuple[Path, ...]
    named: Mapping[str, Path]
    result: Path
    form: str | None
    lax: bool = False

    def iri(self, path: Path) -> str:
        """The IRI of a file of the folder, against which relative IRIs in it are resolved."""
        return BASE + quote(path.resolve().relative_to(self.folder.resolve()).as_posix())

    def text(self) -> str:
        """The query with its base."""
        return f"BASE <{self.iri(self.query)}>\n{self.query.read_text('utf-8-sig')}"

    def file(self, iri: str) -> Path | None:
        """The file that a graph's IRI in the query means: by its place in the folder, else one of the test's files by its last part."""
        path = self.folder / unquote(iri.removeprefix(BASE))
        if iri.startswith(BASE) and path.is_file():
            return path
        last = Path(urlsplit(iri).path).name
        return self.named.get(iri) or next((p for p in (*self.named.values(), *self.default) if p.name == last), None)


@dataclass(frozen=True, slots=True)
class SyntaxTest:
    """A query that must be accepted (`positive`), or refused."""

    case: str
    query: Path
    positive: bool


def evaluation_tests(folder: Path) -> Iterator[EvaluationTest]:
    """The tests of the index, in its order; those without a result ask for nothing that could be compared."""
    index = folder / "index.json"
    if not index.is_file():
        return
    for record in json.loads(index.read_text("utf-8")):
        if record.get("result"):
            yield _evaluation_test(folder, record)


def _evaluation_test(folder: Path, record: Mapping[str, Any]) -> EvaluationTest:
    query = folder / record["query"]
    case = f"{record.get('folder') or Path(record['query']).parent.as_posix()}/{record.get('id') or record.get('name') or query.stem}"
    named = {}
    for entry in _listed(record.get("graphData")):
        path, name = _named_file(entry)
        named[name or BASE + quote(path)] = folder / path
    default = tuple(folder / path for path in _listed(record.get("data")))
    lax = record.get("resultCardinality") == "LaxCardinality"
    return EvaluationTest(case, folder, query, default, named, folder / record["result"], record.get("form"), lax)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _named_file(entry: Any) -> tuple[str, str | None]:
    """Path and name (None: its own IRI) of an entry of graphData."""
    if isinstance(entry, str):
        return entry, None
    path = next(entry[key] for key in ("path", "file", "graph", "data") if key in entry)
    return path, next((entry[key] for key in ("name", "iri", "label") if key in entry), None)


def syntax_tests(folder: Path) -> Iterator[SyntaxTest]:
    """The query syntax tests of every manifest in the folder, in the order of their names."""
    for manifest in sorted(folder.rglob("manifest*.ttl")):
        base = manifest.resolve().as_uri()
        triples = list(pyoxigraph.parse(manifest.read_bytes(), pyoxigraph.RdfFormat.TURTLE, base_iri=base))
        actions = {str(q.subject): q.object.value for q in triples
                   if q.predicate.value == TESTS + "action" and isinstance(q.object, pyoxigraph.NamedNode)}
        names = {str(q.subject): str(getattr(q.object, "value", "")) for q in triples if q.predicate.value == TESTS + "name"}
        for quad in triples:
            kind = getattr(quad.object, "value", "").removeprefix(TESTS)
            if quad.predicate == _TYPE and kind in _SYNTAX and str(quad.subject) in actions:
                query = Path(unquote(urlsplit(actions[str(quad.subject)]).path))
                name = (quad.subject.value.rpartition("#")[2] if isinstance(quad.subject, pyoxigraph.NamedNode)
                        else names.get(str(quad.subject), query.stem))
                yield SyntaxTest(f"{manifest.parent.relative_to(folder).as_posix()}/{name}", query, _SYNTAX[kind])
