"""Commands on queries: registration, states, removal. A query that makes a stream is not removed,
paused or replaced under its readers unless forced."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace as changed
from itertools import count
from typing import Any, Self

from engine.execution.compiled import Compiled
from engine.ir.statement import Statement
from engine.ir.windows import with_rule_windows
from engine.limits import NAMES, EvaluationLimits
from engine.plan.graphs import AUTO, WAYS
from engine.runtime.append import Appender
from engine.runtime.catalogue import check_growth
from engine.runtime.commands import Check, Commands, Proposal, Rows, StaleError, unchecked
from engine.runtime.describe import query_info
from engine.runtime.errors import EngineError, conflict, in_use, not_found
from engine.runtime.registered import Registered, check_sources, given_name, own_iri, read_statement
from engine.runtime.resources import QueryInfo
from engine.runtime.rows import Kind
from engine.runtime.statement_checks import needs_of
from engine.runtime.streams import check_name
from engine.runtime.topics import described_sink
from engine.runtime.view import View

OPTIONS = ("force", "graphs", "limits", "media", "mixedTime", "replace", "since", "sink")
"""What may stand beside the text of a registration."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a text is to be registered: `options` stay with the query, the others are for this command; `media` is the type of a program
    with a time of its own."""

    options: dict[str, Any]
    replace: bool
    force: bool
    since: int | None
    media: str | None = None

    @classmethod
    def of(cls, given: dict[str, Any], most: EvaluationLimits = EvaluationLimits(), kafka: Iterable[str] = ()) -> Self:
        """From the options of a request; 422 names what is wrong. `most` are the limits of the server: a query's may be lower; `kafka` the
        servers that results may be written to."""
        options = dict(given)
        replace, force, since = options.pop("replace", False), options.pop("force", False), _since(options.pop("since", None))
        media = options.pop("media", None)
        for name, value in (("replace", replace), ("force", force), ("mixedTime", options.get("mixedTime", False))):
            if not isinstance(value, bool):
                raise _wrong(name, f"{name} must be true or false.")
        for name, value in options.items():
            if name == "limits":
                _check_limits(value, most)
            elif name == "graphs":
                if value not in (AUTO, *WAYS):
                    raise _wrong("graphs", f"graphs must be one of {AUTO}, {', '.join(WAYS)}.")
            elif name == "sink":
                options[name] = _sink(value, kafka)
            elif name != "mixedTime":
                raise _wrong(name, f"There is no option {name[:100]!r}; there are {', '.join(OPTIONS)}.")
        return cls(options, replace, force, since, media)


def _sink(given: object, kafka: Iterable[str]) -> dict[str, Any]:
    try:
        return described_sink(given, kafka)
    except ValueError as error:
        raise _wrong("sink", f"sink: {error}.") from error


class QueryCommands(Commands):
    def register(self, text: str, name: str | None = None, options: dict[str, Any] | None = None,
                 check: Check[QueryInfo] = unchecked) -> tuple[QueryInfo, bool]:
        """Register a continuous query under `name`, the name in its text, or a new one. The same again is no change; another text
        under a name is 409, or with ``replace`` a new generation (``force``: also of a query that others read). Options: ``mixedTime``,
        ``limits`` of its evaluations (engine/limits.py), ``since``: ``earliest`` or the id of an item, after which its windows see
        what the log still has, and ``media``: the type of a program with a time of its own."""
        wish = Wish.of(options or {}, self.settings.evaluation, self.settings.kafka)
        statement = self._statement(text, wish.media)

        def prepare(view: View) -> Proposal[tuple[str, bool]]:
            chosen = self._query_name(statement, name, view)
            stream = self._own_stream(statement, chosen, view)
            compiled = self._compile(statement, chosen, wish.options, view, stream)
            needs_of(statement, view, self.clock.now_ms()).check(self.settings)
            basis = view.catalogue.basis(statement)

            def decide(end: Appender, view: View, now: int) -> tuple[Rows, tuple[str, bool]]:
                if view.catalogue.basis(statement) != basis or self._query_name(statement, name, view) != chosen:
                    raise StaleError
                old = view.catalogue.queries.get(chosen)
                check(None if old is None else self._info(old, view))
                self._own_stream(statement, chosen, view)
                check_sources(statement, chosen, _makes(statement, stream), view.catalogue.queries, self.settings.base_url)
                same = old is not None and (old.definition.text, old.definition.media) == (text, wish.media)
                if same and old is not None and dict(old.definition.options) == wish.options:
                    return [], (chosen, False)
                if old is not None and not wish.replace:
                    raise conflict(f"The query {chosen!r} has another text, or other options; replace=true takes these.", name=chosen)
                _check_producers(statement, chosen, view, wish)
                if old is not None:
                    _check_readers(old, view, "replaced", wish.force and _makes(statement, stream) == old.makes)
                rows = _register(end, chosen, text, statement, wish, stream, now)
                check_growth(view.catalogue, end.catalogue, self.settings)
                return rows, (chosen, True)

            return decide, {chosen: compiled}

        (chosen, created), view = self._write_prepared(prepare)
        return self._info(view.catalogue.queries[chosen], view), created

    def queries(self) -> list[QueryInfo]:
        view = self._machine.view
        return [self._info(query, view) for _, query in sorted(view.catalogue.queries.items())]

    def query(self, name: str) -> QueryInfo:
        view = self._machine.view
        return self._info(self._query(name, view), view)

    def delete_query(self, name: str, force: bool = False, check: Check[QueryInfo] = unchecked) -> None:
        """Stop a query and remove it with its results; `force` removes those that read it too, otherwise they are 409."""
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            query = self._checked(name, view, check)
            _check_readers(query, view, "removed", force)
            readers = reversed(view.catalogue.queries.dependents(query))
            return [rows for one in (*readers, query) for rows in end.change(Kind.UNREGISTER, one.name, {})], None

        self._write(decide)

    def patch_query(self, name: str, state: str, resume: str = "now", force: bool = False,
                    check: Check[QueryInfo] = unchecked) -> QueryInfo:
        """Pause a running query (`state` ``paused``; `force` pauses those that read it too), or let a paused one go on (``running``)
        with its ``backlog`` or from ``now``."""
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            query = self._checked(name, view, check)
            before = view.standing(query)
            if (before, state) not in (("running", "paused"), ("paused", "running"), (state, state)):
                raise EngineError("bad-transition", 409, f"The query is {before}; it cannot become {state}.", {"state": before})
            if before == state:
                return [], None
            if state == "paused":
                _check_readers(query, view, "paused", force)
                affected = (*reversed(view.catalogue.queries.dependents(query)), query)
                running = [one.name for one in affected if view.standing(one) == "running"]
                return [rows for one in running for rows in end.change(Kind.PAUSE, one, {})], None
            _check_producers(query.statement, name, view)
            return end.change(Kind.RESUME, name, {"backlog": resume == "backlog"}), None

        _, view = self._write(decide)
        return self._info(view.catalogue.queries[name], view)

    def restart_query(self, name: str, reset: bool = False, force: bool = False, check: Check[QueryInfo] = unchecked) -> QueryInfo:
        """Start a query again after a failure, with the readers that failed with it; `reset` forgets what it saw and begins a new
        generation (`force`: also of a query that others read)."""
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            query = self._checked(name, view, check)
            failed = view.standing(query) == "failed"
            if reset or failed:
                _check_producers(query.statement, name, view)
            if not reset:
                return end.change(Kind.RESUME, name, {"backlog": False}) if failed else [], None
            if not failed:
                _check_readers(query, view, "reset", force)
            seen = view.seen(query)
            known = query.definition if seen is None else seen.definition
            wish = Wish(dict(known.options), True, force, None, known.media)
            return _register(end, name, known.text, query.statement, wish, known.stream, now, known.restarts + 1), None

        _, view = self._write(decide)
        return self._info(view.catalogue.queries[name], view)

    # --- what is there

    def _query(self, name: str, view: View) -> Registered:
        query = view.catalogue.queries.get(name)
        if query is None:
            if name in view.catalogue.removed or self.results.was_removed(name):
                raise EngineError("query-removed", 410, f"The query {name!r} has been removed.", {"name": name})
            raise not_found("query", name)
        return query

    def _checked(self, name: str, view: View, check: Check[QueryInfo]) -> Registered:
        query = self._query(name, view)
        check(self._info(query, view))
        return query

    def _info(self, query: Registered, view: View) -> QueryInfo:
        info = query_info(query, view, self.settings.base_url, self.clock.now_ms())
        waits = self._machine.state == "restarting" and info.state in ("running", "idle")
        return changed(info, state="restarting") if waits else info

    # --- what must hold

    def _statement(self, text: str, media: str | None) -> Statement:
        return read_statement(text, media, self._machine.parse, self._machine.parse_rules)

    def _compile(self, statement: Statement, name: str, options: Mapping[str, Any], view: View, stream: str | None = None, *,
                 asked_once: bool = False) -> Compiled:
        """The statement compiled against what is registered, as a query that makes `stream`."""
        check_sources(statement, name, _makes(statement, stream), view.catalogue.queries, self.settings.base_url)
        return self._machine.backend.compile(statement, name, changed(self._names(options, view), asked_once=asked_once))

    def _own_stream(self, statement: Statement, name: str, view: View) -> str | None:
        """The IRI of the stream that a statement registers: the one in its text, or the query's own. 409 if it is another's."""
        iri = own_iri(statement, f"{self.settings.base_url}/queries/{name}")
        if iri is None:
            return None
        streams, queries = view.catalogue.streams, view.catalogue.queries
        if name in streams and statement.form != "SELECT":
            raise conflict(f"Items are pushed to the stream {name!r}; a query cannot make one of this name.", name=name)
        taken = {d["iri"]: n for n, d in streams.items()} | {q.definition.stream: q.name for q in queries.values() if q.name != name}
        if iri in taken:
            raise conflict(f"The stream {iri} is that of {taken[iri]!r}.", name=taken[iri])
        return iri

    def _query_name(self, statement: Statement, name: str | None, view: View) -> str:
        written = given_name(statement)
        if name is not None and written is not None and name != written:
            raise EngineError("name-mismatch", 422, f"The text registers {written!r}, the request {name!r}.", {"name": name})
        if name is None and written is None:
            names = (f"query-{number}" for number in count(1))
            return next(free for free in names if free not in view.catalogue.queries)
        return check_name(name or written or "")


def _register(end: Appender, name: str, text: str, statement: Statement, wish: Wish, stream: str | None, now: int,
              restarts: int = 0) -> Rows:
    payload: dict[str, Any] = {"text": text, "options": wish.options, "registered": now, "restarts": restarts}
    payload |= {key: value for key, value in (("since", wish.since), ("stream", stream), ("media", wish.media)) if value is not None}
    return end.register(name, payload, with_rule_windows(statement, end.catalogue.rule_sets))


def _check_producers(statement: Statement, name: str, view: View, wish: Wish | None = None) -> None:
    """Refuse to begin a query that could not go on: one that it reads is paused or has failed. What a query has made is in no log."""
    makers = view.catalogue.queries.makers
    below = [makers[iri] for iri in dict.fromkeys(source.stream for source in statement.streams) if iri in makers]
    for query in below:
        state = view.standing(query)
        if state != "running":
            raise EngineError("bad-transition", 409, f"The query {query.name!r}, whose stream {name!r} reads, is {state}: "
                              "let that one go on first.", {"query": query.name, "state": state})
    if below and wish is not None and wish.since is not None:
        raise EngineError("unsupported-in-streaming", 422, "since asks for items of the log, and those that a query has made are not "
                          f"in it: {', '.join(str(query.makes) for query in below)}.", {"parameter": "since"})


def _check_readers(query: Registered, view: View, change: str, force: bool) -> None:
    readers = sorted(reader.name for reader in view.catalogue.queries.readers(query.makes))
    if readers and not force:
        raise in_use(f"Queries read the stream of {query.name!r}; it is not {change} under them.", readers)


def _makes(statement: Statement, stream: str | None) -> str | None:
    """The stream of triples that a statement makes, if `stream` is its own."""
    return stream if statement.form in ("CONSTRUCT", "DESCRIBE") else None


def _check_limits(given: object, most: EvaluationLimits) -> None:
    if not isinstance(given, dict):
        raise _wrong("limits", "limits must be an object.")
    for name, value in given.items():
        if name not in NAMES or isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _wrong("limits", f"limits has whole numbers above 0 for {', '.join(NAMES)}.")
        if value > (highest := getattr(most, name)):
            raise EngineError("over-limit", 422, f"The limit {name} of a query may be {highest} at most.",
                              {"limit": name, "most": highest, "actual": value})


def _since(value: object) -> int | None:
    """The position after which a new query sees items; None: that of its registration."""
    if value is None:
        return None
    if value == "earliest":
        return 0
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise _wrong("since", "since must be 'earliest' or the id of an item.")


def _wrong(name: str, detail: str) -> EngineError:
    return EngineError("unknown-parameter", 422, detail, {"parameter": name})
