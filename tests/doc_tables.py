"""The tables of the documents that follow from the code: `python -m tests.doc_tables` writes them anew, a test compares them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

from engine.ir.builtins import BUILTINS
from engine.runtime.settings import Settings
from server.cli import _parser
from server.limits import Limits
from server.problems import SLUGS
from tests import rule_tables

ROOT = Path(__file__).resolve().parents[1]


def options(command: str) -> str:
    """The options and arguments of a command of ``thalweg``."""
    commands = next(action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    formatter = argparse.HelpFormatter(prog="")
    rows = [(f"`{' '.join([*action.option_strings, *_values(action)]) or action.dest}`",
             formatter._expand_help(action) if action.help else f"default: {action.default}")
            for action in commands.choices[command]._actions if "-h" not in action.option_strings]
    return _table(("option", "meaning"), rows)


def _values(action: argparse.Action) -> list[str]:
    if not action.option_strings or action.nargs == 0:
        return []
    choices = "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    return [str(action.metavar) if action.metavar else choices]


def engine_limits() -> str:
    """The bounds with their defaults that the engine alone has."""
    own = {name: value for name, value in Settings().bounds().items() if not hasattr(Limits, name)}
    return _table(("bound", "default"), [(f"`{name}`", f"{value:,}") for name, value in own.items()])


def limits() -> str:
    """The limits with their defaults."""
    return _table(("limit", "default"), [(f"`{field.name}`", f"{getattr(Limits(), field.name):,}") for field in fields(Limits)])


def slugs() -> str:
    """The problems by status."""
    ordered = sorted((status, slug, title) for slug, (status, title) in SLUGS.items())
    return _table(("slug", "status", "meaning"), [(f"`{slug}`", str(status), title) for status, slug, title in ordered])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in (head, ("---",) * len(head), *rows)]
    lines = [" | ".join(row) for row in cells]
    return "\n".join(f"| {line} |" for line in lines)


def rif_builtins() -> str:
    """RIF's built-ins by what they are about."""
    groups = dict.fromkeys(builtin.group for builtin in BUILTINS.values())
    rows = []
    for group in groups:
        named = [sorted(f"`{b.short}`" for b in BUILTINS.values() if b.group == group and b.kind == kind)
                 for kind in ("function", "predicate")]
        rows.append((group, *(", ".join(names) for names in named)))
    return _table(("about", "functions", "predicates"), rows)


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/settings.md", "serve"): lambda: options("serve"),
    ("docs/settings.md", "run"): lambda: options("run"),
    ("docs/settings.md", "why"): lambda: options("why"),
    ("docs/settings.md", "limits"): limits,
    ("docs/settings.md", "engine"): engine_limits,
    ("docs/http-api.md", "slugs"): slugs,
    ("docs/rules.md", "rif-builtins"): rif_builtins,
    **{("docs/owl2rl.md", f"table-{n}"): partial(lambda n: _table(rule_tables.HEAD, rule_tables.owl_rows(n)), n) for n in range(4, 10)},
    ("docs/owl2rl.md", "rdfs"): lambda: _table(rule_tables.HEAD, rule_tables.rdfs_rows()),
}


def marked(text: str, name: str) -> re.Match[str]:
    """The place of a table in a document."""
    found = re.search(rf"(?<=<!-- {name}: begin -->\n).*?(?=<!-- {name}: end -->)", text, re.DOTALL)
    assert found, f"no place for table {name!r}"
    return found


def main() -> None:
    """Write every table into its document."""
    for (document, name), table in TABLES.items():
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        place = marked(text, name)
        path.write_text(text[:place.start()] + table() + "\n" + text[place.end():], encoding="utf-8")


if __name__ == "__main__":
    main()
