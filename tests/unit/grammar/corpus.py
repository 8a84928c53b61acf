"""The texts of others that the grammar is held against: published queries of both dialects and the W3C's SPARQL tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.shared import DATA

_QUERY = re.compile(r"\b(SELECT|CONSTRUCT)\b")


def community_texts() -> dict[str, str]:
    """The queries of the RSP-QL community group: fenced or indented blocks of its Markdown pages."""
    texts = {}
    for page in sorted(DATA.glob("rsp-ql-cg/**/*.md")):
        markdown = page.read_text(encoding="utf-8")
        fenced = re.findall(r"```[^\n]*\n(.*?)```", markdown, re.DOTALL)
        prose = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
        indented = re.findall(r"(?:^(?:\t| {4,})[^\n]*\n|^[ \t]*\n)+", prose, re.MULTILINE)
        queries = [block for block in fenced + indented if _QUERY.search(block)]
        texts |= {f"{page.stem} {number}": block for number, block in enumerate(queries, 1)}
    return texts


def dialect_texts() -> dict[str, str]:
    """The queries of RSP4J, CSRBench (its variables filled in) and RSP-QL*'s use case."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("rsp4j-queries/*.rspql"))}
    for path in sorted(DATA.glob("csrbench/queries/*.engine.query")):
        texts[path.name] = fill(path)
    texts |= {path.name: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("rspqlstar-usecase/**/*.rspqlstar"))}
    return texts


def fill(path: Path) -> str:
    """A query of CSRBench with ``${VAR}`` from its configuration."""
    variables = json.loads(path.with_name(path.name.replace(".engine.query", ".config.json")).read_text(encoding="utf-8"))["vars"]
    return re.sub(r"\$\{(\w+)\}", lambda match: str(variables[match[1]]), path.read_text(encoding="utf-8"))


def evaluation_texts() -> dict[str, str]:
    """The queries of the W3C's SPARQL 1.1 evaluation tests."""
    index = DATA / "w3c-sparql" / "index.json"
    paths = {test["query"] for test in json.loads(index.read_text(encoding="utf-8"))} if index.exists() else set()
    return {path: (index.parent / path).read_text(encoding="utf-8") for path in sorted(paths)}


def syntax_texts() -> dict[str, tuple[str, bool]]:
    """The W3C's SPARQL 1.1 syntax tests of queries: the text, and whether it must parse."""
    folder = DATA / "w3c-sparql" / "sparql11" / "syntax-query"
    manifest = folder / "manifest.ttl"
    if not manifest.exists():
        return {}
    text = manifest.read_text(encoding="utf-8")
    entries = re.findall(r"mf:(Positive|Negative)SyntaxTest11\s*;(.*?)mf:action\s*<([^>]+)>", text, re.DOTALL)
    return {name: ((folder / name).read_text(encoding="utf-8"), kind == "Positive") for kind, _, name in entries}
