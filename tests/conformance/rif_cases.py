"""The files of W3C's RIF cases: ``KIND/CASE/CASE-premise.rif`` and the like; ``.rif`` is RIF/XML, ``.rifps`` presentation syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph

from engine.ir.rules import STREAM, Formula, Import, RuleSet
from engine.records import Triple
from grammar.rif.parse import parse_rules
from tests.rif_documents import link, parse_condition

KINDS = ("PositiveEntailmentTest", "NegativeEntailmentTest", "PositiveSyntaxTest", "NegativeSyntaxTest", "ImportRejectionTest")
MEDIA = {".rifps": "text/x-rif-ps", ".rif": "application/rif+xml"}
GRAPHS = {".ttl": pyoxigraph.RdfFormat.TURTLE, ".rdf": pyoxigraph.RdfFormat.RDF_XML, ".owl": pyoxigraph.RdfFormat.RDF_XML}
# The presentation syntax of a conclusion has no place to declare prefixes: the suite means these.
_SUITE = {"ex": "http://example.org/example#"}
_PREFIX = re.compile(r"Prefix\s*\(\s*([\w.-]+)\s*<([^>]*)>")


@dataclass(frozen=True, slots=True)
class Case:
    """A case of one KIND, in its own folder."""

    kind: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.folder.name}"

    def file(self, role: str, *endings: str) -> Path | None:
        """The file of this role (premise, conclusion, ...) with the first of these endings that there is."""
        found = (path for ending in endings for path in sorted(self.folder.glob(f"*-{role}{ending}")))
        return next(found, None)

    def files(self, role: str) -> list[Path]:
        """The document of this role in each syntax that the case has."""
        return [path for ending in MEDIA if (path := self.file(role, ending)) is not None]

    def conclusions(self, role: str) -> list[tuple[tuple[Formula, ...], ...]]:
        """The conclusion as bodies, in each syntax."""
        premise = self.file("premise", ".rifps")
        declared = dict(_PREFIX.findall(premise.read_text("utf-8-sig"))) if premise else {}
        return [parse_condition(path.read_text("utf-8-sig"), MEDIA[path.suffix], prefixes=_SUITE | declared) for path in self.files(role)]

    def imported(self, imp: Import, *endings: str) -> Path:
        """The file that an import means: by the last part of its IRI. Raises FileNotFoundError."""
        stem = imp.iri.rstrip("/").rpartition("/")[2]
        for name in (stem, *(part + ending for part in (stem, Path(stem).stem) for ending in endings)):
            path = self.folder / name
            if path.suffix in endings and path.is_file():
                return path
        raise FileNotFoundError(f"no file for <{imp.iri}>")

    def linked(self, main: RuleSet) -> RuleSet:
        """A rule set with the documents that it imports."""
        documents: dict[str, RuleSet] = {}
        waiting = [main]
        while waiting:
            for imp in waiting.pop().imports:
                if imp.profile is None and imp.iri not in documents:
                    documents[imp.iri] = read_rules(self.imported(imp, *MEDIA))
                    waiting.append(documents[imp.iri])
        return link(main, documents)

    def graphs(self, rules: RuleSet) -> dict[Import, tuple[Triple, ...]]:
        """The RDF graphs that a rule set imports."""
        return {imp: read_graph(self.imported(imp, *GRAPHS)) for imp in rules.imports if imp.profile not in (None, STREAM)}


def cases(folder: Path, only: str) -> Iterator[Case]:
    """The cases of the folder, kind by kind."""
    for kind in KINDS:
        for path in sorted((folder / kind).glob("*")):
            case = Case(kind, path)
            if path.is_dir() and only in case.name:
                yield case


def read_rules(path: Path, instead: Mapping[str, str] | None = None) -> RuleSet:
    """A document; its name is that of the file without the ending, so that both syntaxes have one name. `instead` has what is to be
    read for some texts in it."""
    text = path.read_text("utf-8-sig")
    for old, new in (instead or {}).items():
        text = text.replace(old, new)
    return parse_rules(text, MEDIA[path.suffix], path.stem)


def read_graph(path: Path) -> tuple[Triple, ...]:
    """The triples of a file; its blank nodes are its own."""
    quads = pyoxigraph.parse(path.read_bytes(), GRAPHS[path.suffix], base_iri=f"http://example.org/{path.name}", rename_blank_nodes=True)
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)
