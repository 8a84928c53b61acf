"""Prints the IR. Statements, queries and patterns come out as text that the grammar reads back to an equal IR; rules readably, also those
that each pass has left of the rules of a query (EXPLAIN).

What no text can say (patterns that the passes have rewritten: OneOf, aggregates outside of a SELECT level) is printed as near to
SPARQL as it goes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.ir.expressions import Call, Exists, Expression
from engine.ir.notation import Expressions, duration, instant, path, predicate, show_rule, show_rule_set, term
from engine.ir.patterns import (BGP, Distinct, Extend, Filter, GraphPattern, Group, Join, LeftJoin, Minus, OrderBy, PathPattern, Pattern,
                                Project, Slice, TriplePattern, Union, Values, WindowPattern, inside)
from engine.ir.printer_facts import show_metric_rules
from engine.ir.printer_lars import show_lars
from engine.ir.rules import Rule, RuleSet
from engine.ir.select_level import Level, take_apart
from engine.ir.statement import (Ask, Construct, Describe, NowWindow, Program, Select, SparqlQuery, Statement, StreamSource, TimedProgram,
                                 TimeWindow, TupleWindow, Window)
from engine.ir.terms import Constant, Term

Printable = Statement | SparqlQuery | Pattern | Rule | RuleSet | Expression

_INDENT = "  "
_BARE_NAME = re.compile(r"[A-Za-z_0-9](?:[\w.-]*[\w-])?", re.ASCII)
RESERVED = frozenset("""AS COMPUTE COMPUTED REPORT START PREFIX BASE SELECT CONSTRUCT ASK DESCRIBE RSTREAM ISTREAM DSTREAM
                     FROM WHERE""".split())
"""Words that are no names in the head of a statement."""


def show(item: Printable) -> str:
    """The text of a statement, query, pattern, expression, rule or rule set."""
    match item:
        case Statement(query=query):
            lines = _program(query, item) if isinstance(query, Program) else _base(query) + _head(item) + _query(query, item)
            return "\n".join(lines) + "\n"
        case Select() | Construct() | Ask() | Describe():
            return "\n".join(_query(item, None)) + "\n"
        case Rule():
            return show_rule(item, show_group)
        case RuleSet():
            return show_rule_set(item, show_group)
        case (BGP() | PathPattern() | Join() | LeftJoin() | Union() | Minus() | Filter() | Extend() | Values() | GraphPattern()
              | WindowPattern() | Group() | Project() | Distinct() | OrderBy() | Slice()):
            return "\n".join(_braced("", item)) + "\n"
    return Expressions(show_group).show(item)


def show_group(pattern: Pattern) -> str:
    """A pattern as a group on one line."""
    return " ".join(line.strip() for line in _braced("", pattern))


def show_window(window: Window) -> str:
    """A window with its brackets: ``[RANGE 10s STEP 2s]``."""
    match window:
        case TimeWindow(range_ms=range_, step_ms=step, delay_ms=0):
            return f"[RANGE {duration(range_)} STEP {duration(step)}]"
        case TimeWindow(range_ms=range_, step_ms=step, delay_ms=delay):
            return f"[FROM NOW-{duration(range_ + delay)} TO NOW-{duration(delay)} STEP {duration(step)}]"
        case TupleWindow(count=count, unit=unit):
            return f"[{unit.upper()} {count}]"
        case NowWindow():
            return "[NOW]"
    return "[ALL]"


def _base(query: SparqlQuery) -> list[str]:
    """BASE where a function of the query resolves against it; all other IRIs are resolved already."""
    stack: list[Any] = [query]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "IRI" and len(node.args) == 2:
            return [f"BASE {show(node.args[1])}"]
        stack += inside(node)
    return []


def _head(statement: Statement) -> list[str]:
    if not statement.registered:
        return []
    parts = ["REGISTER", statement.kind.upper()]
    if statement.name is not None:
        parts.append(_name(statement.name))
    if statement.compute_every_ms is not None:
        parts.append(f"COMPUTE EVERY {duration(statement.compute_every_ms)}")
    if statement.report != "close":
        parts.append("REPORT ON CHANGE" if statement.report == "change" else "REPORT FULL")
    if statement.start_at_ms:
        parts.append(f'START AT "{instant(statement.start_at_ms)}"')
    return [" ".join(parts) + " AS"]


def _name(name: str) -> str:
    return name if _BARE_NAME.fullmatch(name) and name.upper() not in RESERVED else f"<{name}>"


def _sources(statement: Statement | None) -> list[str]:
    if statement is None:
        return []
    lines = [_stream(source) for source in statement.streams]
    lines += [f"FROM {'NAMED ' if source.named else ''}<{source.iri}>" for source in statement.graphs]
    if statement.rules:
        lines.append(f"USING RULES {', '.join(_name(rules.name) for rules in statement.rules)}")
    return lines + [f"USING GRAPH <{source.iri}>" for source in statement.reasoning_graphs]


def _stream(source: StreamSource) -> str:
    named = f"NAMED WINDOW <{source.name}> ON" if source.name is not None else "STREAM"
    return f"FROM {named} <{source.stream}> {show_window(source.window)}"


def _program(program: Program, statement: Statement) -> list[str]:
    if isinstance(program, TimedProgram):
        return [(show_lars if program.rules.granularity_ms else show_metric_rules)(program.rules).rstrip("\n")]
    profile = [f"USING PROFILE <{program.profile}>"] if program.profile else []
    return [*_sources(statement), *profile, show_rule_set(program.rules, show_group)]


def _query(query: SparqlQuery, statement: Statement | None) -> list[str]:
    output = f"{statement.output.upper()} " if statement is not None and statement.output != "rstream" else ""
    sources = _sources(statement)
    match query:
        case Select(pattern=pattern):
            return _select(pattern, sources, output)
        case Construct(template=template, pattern=pattern):
            body = [f"{_INDENT}{_triple(triple)} ." for triple in template]
            form = [f"{output}CONSTRUCT {{", *body, "}"] if body else [f"{output}CONSTRUCT {{}}"]
        case Ask(pattern=pattern):
            form = [f"{output}ASK"]
        case Describe(terms=terms, pattern=pattern):
            form = [f"{output}DESCRIBE {' '.join(map(term, terms)) or '*'}"]
    level = take_apart(pattern, projects=False)
    return form + sources + _braced("WHERE ", level.where) + _modifiers(level, Expressions(show_group, _aggregates(level)))


def _select(pattern: Pattern, sources: list[str], output: str = "") -> list[str]:
    level = take_apart(pattern, projects=True)
    expressions = Expressions(show_group, _aggregates(level))
    named = {variable: f"({expressions.show(expression)} AS {term(variable)})" for variable, expression in level.extends}
    columns = " ".join(named.get(variable) or term(variable) for variable in level.variables) or "*"
    form = f"{output}SELECT {'DISTINCT ' if level.distinct else ''}{columns}"
    return [form, *sources, *_braced("WHERE ", level.where), *_modifiers(level, expressions)]


def _aggregates(level: Level) -> dict[Term, str]:
    """What stands for the variables of keys and aggregates."""
    plain = Expressions(show_group)
    keys: dict[Term, str] = {variable: plain.show(expression) for variable, expression in level.keys
                             if expression is not None and not variable.visible}
    inner = Expressions(show_group, keys)
    return keys | {variable: inner.show(aggregate) for variable, aggregate in level.aggregates}


def _modifiers(level: Level, expressions: Expressions) -> list[str]:
    lines = []
    if level.keys:
        plain = Expressions(show_group)
        keys = [term(variable) if expression is None else f"({plain.show(expression)})" if not variable.visible
                else f"({plain.show(expression)} AS {term(variable)})" for variable, expression in level.keys]
        lines.append(f"GROUP BY {' '.join(keys)}")
    if level.having is not None:
        lines.append(f"HAVING ({expressions.show(level.having)})")
    if level.orders:
        orders = [f"{'DESC' if descending else 'ASC'}({expressions.show(expression)})" for expression, descending in level.orders]
        lines.append(f"ORDER BY {' '.join(orders)}")
    if level.limit is not None:
        lines.append(f"LIMIT {level.limit}")
    if level.offset or level.sliced and level.limit is None:
        lines.append(f"OFFSET {level.offset}")
    return lines + (_values(level.values) if level.values is not None else [])


def _braced(before: str, pattern: Pattern, condition: Expression | None = None) -> list[str]:
    """A group with its braces; `condition` is a filter of the group itself (OPTIONAL's)."""
    if condition is not None:
        lines = _elements(pattern) + [_filter(condition)]
    elif isinstance(pattern, Filter):
        lines = _elements(pattern.pattern) + [_filter(pattern.condition)]
    elif isinstance(pattern, (Project, Distinct, Slice, OrderBy, Group)):
        lines = _select(pattern, [])
    else:
        lines = _elements(pattern)
    return [f"{before}{{", *(_INDENT + line for line in lines), "}"] if lines else [f"{before}{{}}"]


def _filter(condition: Expression) -> str:
    text = Expressions(show_group).show(condition)
    return f"FILTER {text}" if isinstance(condition, Exists) else f"FILTER({text})"


def _elements(pattern: Pattern) -> list[str]:
    """The elements of a group, without its braces."""
    match pattern:
        case BGP(triples=triples):
            return [f"{_triple(triple)} ." for triple in triples]
        case Join(left=left, right=right):
            return _elements(left) + _joined(left, right)
        case LeftJoin(left=left, right=right, condition=condition):
            if condition is None and isinstance(right, Filter):    # one that is not the condition
                return [*_elements(left), "OPTIONAL {", *(_INDENT + line for line in _braced("", right)), "}"]
            return _elements(left) + _braced("OPTIONAL ", right, condition)
        case Minus(left=left, right=right):
            return _elements(left) + _braced("MINUS ", right)
        case Extend(pattern=inner_pattern, variable=variable, expression=expression):
            return _elements(inner_pattern) + [f"BIND({Expressions(show_group).show(expression)} AS {term(variable)})"]
    return _element(pattern)


def _element(pattern: Pattern) -> list[str]:
    match pattern:
        case PathPattern(subject=subject, path=path_, object=object_):
            return [f"{term(subject)} {path(path_)} {term(object_)} ."]
        case Union(left=left, right=right):
            before = _element(left) if isinstance(left, Union) else _braced("", left)
            after = _braced("UNION ", right)
            return before[:-1] + [f"{before[-1]} {after[0]}"] + after[1:]
        case Values():
            return _values(pattern)
        case GraphPattern(name=name, pattern=inner):
            return _braced(f"GRAPH {term(name)} ", inner)
        case WindowPattern(name=name, pattern=inner):
            return _braced(f"WINDOW {term(name)} ", inner)
    return _braced("", pattern)


def _joined(left: Pattern, right: Pattern) -> list[str]:
    """The right side of a join: triples that would run together with those before them get braces of their own."""
    last = left.right if isinstance(left, Join) else left
    if isinstance(right, BGP) and isinstance(last, (BGP, PathPattern)):
        return _braced("", right)
    return _braced("", right) if isinstance(right, (Join, LeftJoin, Minus, Extend, Filter)) else _elements(right)


def _triple(triple: TriplePattern) -> str:
    return f"{term(triple.subject)} {predicate(triple.predicate)} {term(triple.object)}"


def _values(values: Values) -> list[str]:
    def cell(value: Constant | None) -> str:
        return "UNDEF" if value is None else term(value)

    header = f"VALUES ({' '.join(map(term, values.variables))}) {{"
    rows = [f"{_INDENT}({' '.join(map(cell, row))})" for row in values.rows]
    return [header, *rows, "}"] if rows else [header + "}"]


MOST_ROWS = 5


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass by its name, and the rules that it left; `note` says what else it did."""

    name: str
    rules: tuple[Rule, ...]
    note: str = ""


def show_passes(passes: Sequence[Pass]) -> str:
    """One heading for each pass with its rules below, where they are others than before; comments of SPARQL, so that a query may follow.
    ``# partial: 13 rules -> 1 rule``"""
    lines: list[str] = []
    before: tuple[Rule, ...] | None = None
    for step in passes:
        counted = _count(step.rules) if before is None else f"{_count(before)} -> {_count(step.rules)}"
        lines.append(f"# {step.name}: {counted}{f', {step.note}' if step.note else ''}")
        if step.rules != before:
            rules, facts = _apart(step.rules)
            lines += [f"#   {show_rule(rule, show_group, MOST_ROWS)}" for rule in (*rules, *facts[:MOST_ROWS])]
            lines += [f"#   ... {len(facts)} facts in all"] if len(facts) > MOST_ROWS else []
        before = step.rules
    return "\n".join(lines) + "\n" if lines else ""


def _apart(rules: Sequence[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The rules, and those without a body: facts."""
    return [rule for rule in rules if rule.body], [rule for rule in rules if not rule.body]


def _count(rules: Sequence[Rule]) -> str:
    counted = [(len(found), word) for found, word in zip(_apart(rules), ("rule", "fact"))]
    return " and ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in counted if number or word == "rule")
