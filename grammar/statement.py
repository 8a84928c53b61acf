"""From the text of a statement to `Statement`: head, SPARQL's part, names, and what must hold between them and of a whole query."""

from typing import Any, Literal

from engine.ir.expressions import Aggregate, Call, Exists
from engine.ir.patterns import Alternative, Inverse, OrderBy, PathPattern, Repeat, Sequence, TriplePattern, Values, inside
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.statement import (AllWindow, Construct, GraphSource, NowWindow, Output, Query, Report, RuleSource, Statement, StreamSource,
                                 TimeWindow, TupleWindow, Window)
from engine.ir.terms import Constant, Variable
from grammar.body import BodyError, parse_body
from grammar.clauses import Clause
from grammar.combinators import TooMuchEffort
from grammar.head import Head, read_head
from grammar.hints import body_diagnostic
from grammar.patterns import Patterns
from grammar.queries import Queries
from grammar.terms import Labels, Names
from grammar.text import Leaf, Text, Token, scan, unclosed

MAX_DEPTH = 250
MAX_PATTERNS = 200      # each is a relation of the SQL text, with a column for each variable so far
MAX_TEMPLATE = 1_000
MAX_VARIABLES = 500
MAX_ORDER = 50
MAX_CELLS = 20_000      # of VALUES; 64 KiB have fewer rows of one column

TEXT_LIMITS = {"depth": MAX_DEPTH, "patterns": MAX_PATTERNS, "template_triples": MAX_TEMPLATE, "variables": MAX_VARIABLES,
               "order_conditions": MAX_ORDER, "values_cells": MAX_CELLS}

_LEAVES = (TriplePattern, Variable, Constant, Span, str, int, type(None))


def parse(text: str) -> Statement:
    """Parse one statement: a registered query or stream, or a plain SPARQL 1.1 query. Raises DiagnosticError, and nothing else, with every
    mistake found. Whether streams and graphs exist is not looked at here."""
    try:
        return _parse(Text(text))
    except RecursionError:
        raise DiagnosticError(Diagnostic("nesting-too-deep", "The statement is nested too deeply.")) from None


def _parse(text: Text) -> Statement:
    tokens, clean = scan(text)
    head, found = read_head(text, tokens, clean)
    if found and not head.complete:
        raise DiagnosticError(*found)
    if head.unread:
        tokens = tuple(token for token in tokens if not any(begin <= token.start < end for begin, end in head.unread))
    errors = unclosed(text, tokens)
    if errors and errors[0].code != "query-syntax":
        raise DiagnosticError(*found, *errors)
    try:
        prologue, tree = parse_body(head.body)
    except BodyError as error:
        raise DiagnosticError(*found, _first(text, errors, body_diagnostic(text, tokens, error.place, error.expected))) from None
    except TooMuchEffort as error:
        raise DiagnosticError(*found, text.error("The statement is too long: its parse was given up here.", error.place, error.place,
                                                 code="query-too-large", hint="put long lists of data into a graph")) from None
    if errors:
        raise DiagnosticError(*found, *errors)
    names = Names(text)
    names.declare(prologue)
    reader = _Assembler(text, names, head)
    reader.sources()
    labels = Labels({token.text for token in tokens if token.kind == "blank"})
    windows, graphs = (None, None) if head.unread else (reader.window_names, reader.graph_names)
    patterns = Patterns(names, labels, head.windows, windows, graphs)
    query = Queries(names, labels, patterns).query(tree)
    over = over_a_limit(query)
    if over is not None:
        raise DiagnosticError(*found, over)
    statement = reader.statement(query)
    if found or names.errors or statement is None:
        raise DiagnosticError(*sorted([*found, *names.errors], key=lambda found: found.span.start if found.span else 0))
    return statement


def _first(text: Text, unclosed_: list[Diagnostic], found: Diagnostic) -> Diagnostic:
    """Of "never closed" and "expected" the one that says more: a bracket left open is met as something unexpected later."""
    if not unclosed_:
        return found
    open_, place = unclosed_[0].span, found.span
    if open_ is not None and place is not None and "ends too early" not in found.message and place.start < open_.start:
        return found
    return unclosed_[0]


class _Assembler:
    """Resolves the names of the head's clauses and puts the statement together."""

    def __init__(self, text: Text, names: Names, head: Head) -> None:
        self._text, self._names, self._head = text, names, head
        self._streams: list[StreamSource] = []
        self._graphs: list[GraphSource] = []
        self._reasoning: list[GraphSource] = []
        self._rules: list[RuleSource] = []
        self.window_names: frozenset[str] = frozenset()
        self.graph_names: frozenset[str] = frozenset()      # windows named by FROM NAMED STREAM, which GRAPH may name

    def sources(self) -> None:
        by_graph = set()
        for clause in self._head.sources:
            stream, graph = clause.get("stream"), clause.get("graph")
            if stream is not None:
                source = self._stream(clause, stream)
                if source is not None:
                    self._streams.append(source)
                    if clause.get("named") and not clause.get("window"):
                        by_graph.add(source.stream)
            elif graph is not None:
                self._graphs.append(GraphSource(self._names.iri(graph), bool(clause.get("named")), span=self._names.span(graph)))
            elif clause.get("reasoning") is not None:
                leaf = clause.parts["reasoning"]
                self._reasoning.append(GraphSource(self._names.iri(leaf), False, span=self._names.span(leaf)))
            else:
                self._rules.extend(RuleSource(self._name(leaf), span=self._names.span(leaf)) for leaf in clause.get("rule") or ())
        self.window_names = frozenset(source.name for source in self._streams if source.name is not None)
        self.graph_names = frozenset(by_graph)

    def statement(self, query: Query) -> Statement | None:
        """The whole statement; None after an error was noted."""
        register = self._head.register
        kind: Literal["query", "stream"] = "query"
        name = report = None
        if register is not None:
            what = register.parts["what"].text
            if what == "STREAM" or (what != "QUERY" and isinstance(query, Construct)):
                kind = "stream"
            written = register.get("name")
            name = self._name(written) if written is not None else None
            report = self._report(register)
        start, every = (register.get("start"), register.get("every")) if register else (None, None)
        output = self._output()
        if self._names.errors:
            return None
        return Statement(query, self._text.written, name, kind, register is not None, self._dialect(), output, report or "close",
                         every.value if every else None, start.value if start else 0, tuple(self._streams), tuple(self._graphs),
                         tuple(self._rules), tuple(self._reasoning))

    def _dialect(self) -> Literal["sparql", "csparql", "rspql"]:
        if any(source.name is not None for source in self._streams):
            return "rspql"
        return "csparql" if self._head.register is not None or self._streams else "sparql"

    def _stream(self, clause: Clause, leaf: Leaf) -> StreamSource | None:
        stream = self._names.iri(leaf)
        window = self._window(clause)
        written = clause.get("window")
        name = clause.get("generated")
        if written is not None:
            name = self._names.iri(written)
        elif clause.get("named"):
            name = stream
        place = written or leaf
        if name is not None and any(other.name == name for other in self._streams):
            self._error(f"Window {place.text} is declared twice.", place, "give each window a name of its own")
        return None if window is None else StreamSource(stream, window, name, span=self._text.span(leaf.start, clause.end))

    def _window(self, clause: Clause) -> Window | None:
        if clause.get("now") or clause.errors:      # with a wrong amount nothing will come of it anyway
            return NowWindow()
        if clause.get("all"):
            return AllWindow()
        if clause.get("count"):
            hop = clause.get("hop")
            if hop is not None and hop.value != 1:
                self._names.error("A window of triples or items slides by 1; another STEP is not supported.", hop.start, hop.end,
                                  code="step-not-supported", hint="leave out STEP, and say COMPUTE EVERY to evaluate less often")
            unit: Literal["triples", "items"] = "triples" if clause.parts["unit"].text == "TRIPLES" else "items"
            return TupleWindow(clause.parts["count"].value, unit)
        if clause.get("begin"):
            begin, finish = clause.parts["begin"], clause.get("finish")
            delay = finish.value if finish else 0
            if begin.value <= delay:
                self._error("This window ends before it begins.", begin,
                            "the first distance is the longer one: [FROM NOW-2h TO NOW-1h STEP 1h]")
                return None
            return TimeWindow(begin.value - delay, clause.parts["step"].value, delay)
        range_, step = clause.parts["range"], clause.get("step")
        return TimeWindow(range_.value, step.value if step else range_.value)

    def _report(self, register: Clause) -> Report | None:
        written = register.get("report") or []
        kinds = {leaf.text for leaf in written}
        if len(kinds) > 1:
            self._error("REPORT ON CHANGE and REPORT FULL exclude each other.", written[-1], "say one of them")
        if "CHANGE" in kinds and register.get("every") is not None:
            self._error("REPORT ON CHANGE evaluates at each event, COMPUTE EVERY at fixed times.", register.parts["every"],
                        "say one of them")
        if not kinds:
            return None
        return "change" if "CHANGE" in kinds else "full"

    def _output(self) -> Output:
        operators = self._head.operators
        for operator in operators[1:]:
            if operator.text != operators[0].text:
                self._error(f"{operator.text} and {operators[0].text} in one statement.", operator, "say RSTREAM, ISTREAM or DSTREAM once")
        outputs: dict[str, Output] = {"RSTREAM": "rstream", "ISTREAM": "istream", "DSTREAM": "dstream"}
        return outputs[operators[0].text] if operators else "rstream"

    def _name(self, leaf: Leaf) -> str:
        return self._names.iri(leaf) if leaf.text[0] == "<" or ":" in leaf.text else leaf.text

    def _error(self, message: str, place: Leaf | Token, hint: str) -> None:
        self._names.error(message, place.start, place.end, hint=hint)


def over_a_limit(query: Query) -> Diagnostic | None:
    """What is said of a query so deep that walking it could exhaust the stack (long chains of operators or UNIONs lean to one side), or of
    more parts than can be planned and run in a short time."""
    if isinstance(query, Construct) and len(query.template) > MAX_TEMPLATE:
        return _too_many("triples in its template", MAX_TEMPLATE, query.template[MAX_TEMPLATE].span)
    patterns = cells = 0
    variables: set[Variable] = set()
    stack: list[tuple[Any, int, Span | None]] = [(query.pattern if isinstance(query, Construct) else query, 1, None)]
    while stack:
        node, depth, around = stack.pop()
        span = getattr(node, "span", None)
        if depth > MAX_DEPTH and not isinstance(node, _LEAVES):
            return Diagnostic("nesting-too-deep", f"More than {MAX_DEPTH} operators or groups hang on one another.", span or around,
                              hint=_hint(node))
        match node:
            case TriplePattern() | PathPattern():
                patterns += 1
            case Variable():
                variables.add(node)
            case OrderBy(conditions=conditions) if len(conditions) > MAX_ORDER:
                return _too_many("conditions in ORDER BY", MAX_ORDER, span)
            case Values(variables=columns, rows=rows):
                cells += len(rows) * len(columns)
        if patterns > MAX_PATTERNS:
            return _too_many("triple patterns and paths", MAX_PATTERNS, span)
        if len(variables) > MAX_VARIABLES:
            return _too_many("variables", MAX_VARIABLES, getattr(query.pattern, "span", None))
        if cells > MAX_CELLS:
            return _too_many("cells in VALUES", MAX_CELLS, span)
        stack.extend((child, depth if isinstance(child, tuple) else depth + 1, span or around) for child in reversed(list(inside(node))))
    return None


def _too_many(what: str, most: int, span: Span | None) -> Diagnostic:
    return Diagnostic("query-too-large", f"The query has more {what} than it may have: the limit is {most}.", span)


def _hint(node: Any) -> str:
    if isinstance(node, (Call, Exists, Aggregate)):
        return "a long || of comparisons is shorter as ?x IN (...)"
    if isinstance(node, (Alternative, Sequence, Inverse, Repeat)):
        return "a long path alternative is shorter as ?p with VALUES ?p { ... }"
    return "a long UNION is often shorter with VALUES"
