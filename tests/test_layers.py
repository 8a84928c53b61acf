"""Which piece may import which: the boundaries of docs/architecture.md, read from the source by `ast`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Modules that belong to no layer: everyone may use them.
COMMON = {"engine.timeline", "engine.facts", "engine.limits", "engine.ipc", "engine.files", "engine.output", "engine.records",
          "engine.supervision", "engine.grouping", "engine.arrays", "engine.processors", "engine.ir"}

# A layer is a package, or a module, of ours; the longest name that fits is a module's layer.
MAY_IMPORT: dict[str, set[str]] = {
    "engine.ir": set(),
    "engine.timeline": set(),
    "engine.facts": set(),
    "engine.limits": set(),
    "engine.ipc": set(),
    "engine.files": set(),
    "engine.output": set(),
    "engine.records": set(),
    "engine.supervision": set(),
    "engine.grouping": set(),
    "engine.arrays": set(),
    "engine.processors": set(),
    "engine.functions": set(),
    "engine.reference": {"engine.functions"},
    "engine.why": {"engine.functions", "engine.reference"},
    "engine.rewrite": set(),
    "engine.plan": set(),
    "engine.sql": {"engine.functions", "engine.plan"},
    "engine.worker": {"engine.functions", "engine.plan", "engine.sql"},
    "engine.execution": {"engine.functions", "engine.plan", "engine.sql", "engine.worker"},
    "engine.spark": {"engine.functions", "engine.plan", "engine.sql", "engine.worker", "engine.execution"},
    "engine.compiler": {"engine.rewrite", "engine.plan", "engine.execution"},
    "engine.runtime": {"engine.spark", "engine.execution", "engine.sql", "engine.plan", "engine.compiler", "engine.functions",
                       "engine.rewrite", "engine.worker"},
    "grammar": set(),
    "server": {"grammar", "engine", "engine.compiler", "engine.runtime", "engine.spark", "engine.execution", "engine.plan",
               "engine.functions", "engine.reference", "engine.rewrite", "engine.why"},
    "engine": set(),
}

# Frameworks stay at the rim: where each may be imported.
RIM: dict[str, tuple[str, ...]] = {
    "pyspark": ("engine.spark",),
    "py4j": ("engine.spark",),
    "graphframes": ("engine.spark",),
    "duckdb": ("engine.spark", "engine.worker"),
    "sqlglot": ("engine.sql",),
    "flask": ("server",),
    "werkzeug": ("server",),
    "uvicorn": ("server",),
    "pyparsing": ("grammar",),
    "rdflib": ("grammar", "server.formats"),
    "pyoxigraph": ("server",),
    "defusedxml": ("grammar",),
    "pandas": ("engine.spark",),
}

# Names of languages that a program or query may be written in. SPARQL is none of them: it is the algebra and the protocol.
LANGUAGE = re.compile(r"(?<![a-z])(lars|datalog[-_ ]?mtl|dmtl|meteor|rif|rifps|c-?sparql|rsp-?ql)(?![a-z])", re.IGNORECASE)
# Who may name them: texts are read, rewritten and printed there.
NAME_LANGUAGES = ("grammar", "engine.rewrite", "engine.ir.printer")
# Names of a library that has its name from a W3C specification, not of a front end: who names it, and what may be said there.
LIBRARIES = {
    # RIF Datatypes and Built-Ins: functions that rules of any language, and plans, call.
    "engine.functions": re.compile(r"(engine\.functions\.)?rif_(numbers|strings|values)"),
    "engine.ir.builtins": re.compile(r"RIF|rif|http://www\.w3\.org/2007/rif(-builtin-(function|predicate))?#"),
    # The datatype of a list as a term.
    "engine.ir.lists": re.compile(r"http://www\.w3\.org/2007/rif#list"),
    # The two built-in rules by which RIF-BLD, section 3.2, says what a subclass is.
    "engine.ir.rules": re.compile(r"rif:(subclass|member)"),
}


def modules() -> list[Path]:
    return sorted(path for package in ("engine", "grammar", "server") for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every module (or name in a module) that the file imports, wherever in it."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # "from engine import facts" means engine.facts; a class's name does no harm, for the longest layer that fits counts.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def layer_of(name: str) -> str | None:
    """The longest name of MAY_IMPORT that `name` is or lies under."""
    parts = name.split(".")
    return next((prefix for end in range(len(parts), 0, -1) if (prefix := ".".join(parts[:end])) in MAY_IMPORT), None)


def offences(path: Path) -> list[str]:
    """What the file imports although its layer may not."""
    name = name_of(path)
    layer = layer_of(name)
    assert layer is not None, f"{name} belongs to no layer: add it to MAY_IMPORT"
    allowed = MAY_IMPORT[layer] | COMMON | {layer}
    found = []
    for line, target in imported(path):
        top = target.split(".")[0]
        if top in RIM and not any(name == rim or name.startswith(rim + ".") for rim in RIM[top]):
            found.append(f"{path.relative_to(ROOT)}:{line}: {top} belongs to {', '.join(RIM[top])}")
        if (wanted := layer_of(target)) is not None and wanted not in allowed and layer in MAY_IMPORT:
            found.append(f"{path.relative_to(ROOT)}:{line}: {layer} may not import {target}")
        if top in ("tests", "static"):
            found.append(f"{path.relative_to(ROOT)}:{line}: {top} is not for the product's code")
    return found


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_keep_the_layers(path: Path) -> None:
    assert not offences(path)


def test_functions_may_import_only_the_ir() -> None:
    """They run inside Spark's Python workers: each import is paid by every worker."""
    for path in sorted((ROOT / "engine/functions").rglob("*.py")):
        for line, target in imported(path):
            top = target.split(".")[0]
            assert top in sys.stdlib_module_names or top in ("engine", "pyarrow", "numpy"), f"{path}:{line}: {target}"


def test_every_module_says_what_it_is_for() -> None:
    """A docstring in each module that has any code."""
    silent = [name_of(path) for path in modules()
              if (tree := ast.parse(path.read_text(encoding="utf-8"))).body and ast.get_docstring(tree) is None]
    assert not silent


def said(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every name and string that is no docstring."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                text.value = ""
            case ast.Constant(value=str(text), lineno=line) | ast.Name(id=text, lineno=line) | ast.arg(arg=text, lineno=line):
                yield line, text
            case ast.Attribute(attr=text, lineno=line) | ast.keyword(arg=str(text), lineno=line):
                yield line, text
            case ast.FunctionDef(name=text, lineno=line) | ast.ClassDef(name=text, lineno=line):
                yield line, text
            case ast.alias(name=text, asname=other, lineno=line):
                yield from ((line, one) for one in (text, other) if one)
            case ast.ImportFrom(module=str(text), lineno=line):
                yield line, text


def languages_named(path: Path) -> list[str]:
    """Where a module outside NAME_LANGUAGES names a language; its own name included."""
    name = name_of(path)
    if name.startswith(NAME_LANGUAGES):
        return []
    allowed = next((libraries for prefix, libraries in LIBRARIES.items() if name.startswith(prefix)), None)
    texts = [(1, name.rpartition(".")[2]), *said(ast.parse(path.read_text(encoding="utf-8"), str(path)))]
    return [f"{path.relative_to(ROOT)}:{line}: {text[:100]}" for line, text in texts
            if LANGUAGE.search(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)) and not (allowed and allowed.fullmatch(text))]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_the_grammar_knows_languages(path: Path) -> None:
    """A front end is grammar, checks and rewriting, and nothing else."""
    assert not languages_named(path)


@pytest.mark.parametrize(("source", "count"), [
    ('KIND = "text/x-lars"', 1), ("from grammar.rif import parse", 1), ("from grammar import datalogmtl as d", 1), ("is_dmtl = 1", 1),
    ("class NotLars:\n    pass", 1), ("def f(csparql):\n    return csparql", 2), ("f(rspql=1)", 1), ('print(f"as LARS has {it}")', 1),
    ('"""What LARS has."""\ndef f():\n    """Of RIF."""\n    return verify(collars, "terrific")', 0),
])
def test_the_rule_finds_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, count: int) -> None:
    path = tmp_path / "engine/plan/sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert len(languages_named(path)) == count


@pytest.mark.parametrize(("source", "offence"), [
    ("import pyspark.sql", "pyspark belongs to engine.spark"),
    ("from ..spark import session", "engine.plan may not import engine.spark.session"),
    ("from engine.runtime.clock import Clock", "engine.plan may not import engine.runtime.clock.Clock"),
    ("def f():\n    from rdflib import Graph", "rdflib belongs to grammar, server.formats"),
    ("from .. import compiler", "engine.plan may not import engine.compiler"),
    ("from ..ir import terms\nfrom ..facts import FACTS\nimport json\nfrom . import nodes", None),
])
def test_the_rule_finds_offences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, offence: str | None) -> None:
    path = tmp_path / "engine/plan/sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    found = offences(path)
    assert (offence in found[0] and len(found) == 1) if offence else not found
