"""The tables of docs/owl2rl.md: the rules as engine/rewrite/owl2rl.py has them, and how each runs once partially evaluated."""

from __future__ import annotations

from engine.ir.rules import Atom, Rule
from engine.rewrite.owl2rl import LEMMAS, RDFS_RULES, TABLES, W3C_TABLES
from engine.rewrite.partial import BY_LENGTH, is_about_schema
from engine.rewrite.rule_text import rule_table

HEAD = ("rule", "where", "follows", "how it runs")


def rows(text: str) -> list[tuple[str, ...]]:
    """A row for each rule of a text of the module."""
    found = []
    for line in filter(None, map(str.strip, text.replace("\\\n", " ").splitlines())):
        name, _, rest = line.partition(" ")
        where, _, follows = rest.partition("=>")
        rule = rule_table(line, TABLES)[name][0]
        found.append((f"`{name}`", f"`{_spaced(where)}`" if where.strip() else "", f"`{_spaced(follows)}`", runs(rule)))
    return found


def owl_rows(number: int) -> list[tuple[str, ...]]:
    """The rules of one of the W3C's tables; what else partial evaluation asks, below Table 8."""
    return rows(W3C_TABLES[number] + (LEMMAS if number == 8 else ""))


def rdfs_rows() -> list[tuple[str, ...]]:
    """The rules of `rdfs`."""
    return rows(RDFS_RULES)


def runs(rule: Rule) -> str:
    """How a rule runs once it is partially evaluated."""
    atoms = [part for part in rule.body if isinstance(part, Atom)]
    data = [part for part in atoms if not is_about_schema(part)]
    if not atoms:
        return "facts"
    if not data:
        return "on the schema, once"
    if len(data) == len(atoms):
        return "on the data, for the datatypes that the schema names" if rule.name == "dt-type2" else "on the data, as it stands"
    if any(part.predicate in BY_LENGTH for part in data):
        return "for each length of list, a table of the schema joined with the data"
    return f"a table of the schema joined with {len(data)} atom{'s' * (len(data) > 1)} of the data"


def _spaced(text: str) -> str:
    return " ".join(text.split())
