"""``/queries``: registration, state, plan and statistics of continuous queries. ``/explain``: check a text and show its plan; nothing is
registered."""

import json
from typing import Any
from urllib.parse import unquote_plus

from flask import Blueprint, Response

from engine.execution.compiled import STAGES
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.runtime.commands import unchecked
from engine.runtime.errors import EngineError
from engine.runtime.query_commands import OPTIONS
from engine.runtime.resources import QueryInfo
from grammar.rule_sets import BY_MEDIA, RULE_SET_TYPES, RULE_TYPES, TIMED_TYPES, media_of
from server.formats.media import FORM, JSON, MERGE_PATCH, SPARQL_QUERY, TEXT
from server.formats.values import choice, count, flag, since
from server.problems import Problem, diagnostic_json
from server.web import (best, body_type, condition, etag_of, json_object, json_reply, known_members, no_content, parameter, path, reply,
                        route, site, text_body)

blueprint = Blueprint("queries", __name__)
STATES = ("starting", "running", "idle", "paused", "restarting", "failed", "finished", "stopping")
STATEMENT_TYPES = (SPARQL_QUERY, TEXT, JSON, *RULE_TYPES, *TIMED_TYPES)
_CHANGES: dict[str, tuple[Any, ...]] = {"state": ("paused", "running"), "resume": ("backlog", "now"), "force": (True, False)}
_REFUSED: dict[str, Any] = {"valid": False, "errors": [], "warnings": [], "plan": None, "estimate": None}


@route(blueprint, "/queries", "GET", query=("state", "limit", "offset"))
def listing() -> Response:
    """The queries, in the order of their names."""
    state = parameter("state", choice(*STATES), None)
    limit, offset = parameter("limit", count(site().limits.page), site().limits.page), parameter("offset", count(1 << 31), 0)
    infos = sorted((info for info in site().engine.queries() if state in (None, info.state)), key=lambda info: info.name)
    shown: dict[str, Any] = {"queries": [query_json(info) for info in infos[offset:offset + limit]], "total": len(infos)}
    if offset + limit < len(infos):
        shown["next"] = f"{path('queries')}?limit={limit}&offset={offset + limit}" + (f"&state={state}" if state else "")
    return json_reply(shown)


@route(blueprint, "/queries", "POST")
def post() -> Response:
    """Register a query under the name in its text, or a generated one."""
    text, options = statement_text(STATEMENT_TYPES)
    return _register(text, options.pop("name", None), options)


@route(blueprint, "/queries/<name>", "PUT", query=("replace", "force", "since"))
def put(name: str) -> Response:
    text, options = statement_text((*STATEMENT_TYPES, FORM))
    if options.pop("name", name) != name:
        raise Problem("name-mismatch", "The name in the body is not the one in the address.")
    given = {"replace": parameter("replace", flag, None), "force": parameter("force", flag, None), "since": parameter("since", since, None)}
    options |= {option: value for option, value in given.items() if value is not None}
    return _register(text, name, options)


@route(blueprint, "/queries/<name>", "GET")
def get(name: str) -> Response:
    """The query with its state; its text for ``Accept: application/sparql-query``, or the type of a rule program."""
    info = site().engine.query(name)
    media = best(JSON, info.media or media_of(info.text) or SPARQL_QUERY, TEXT)
    if media == JSON:
        return json_reply(query_json(info), headers={"ETag": f'"{_etag(info)}"'})
    return reply(info.text, media, headers={"ETag": f'"{_etag(info)}"'})


@route(blueprint, "/queries/<name>", "PATCH")
def patch(name: str) -> Response:
    """Pause a query (``force``: with those that read it) or let it go on (``resume``: ``backlog`` or ``now``)."""
    body_type((MERGE_PATCH, JSON))
    change = json_object(text_body(site().limits.json_body))
    known_members(change, _CHANGES)
    state, resume, force = change.get("state"), change.get("resume", "now"), change.get("force", False)
    for member, value in (("state", state), ("resume", resume), ("force", force)):
        if value not in _CHANGES[member]:
            raise Problem("unknown-parameter", f"{member} must be {' or '.join(map(json.dumps, _CHANGES[member]))}.", status=422,
                          extra={"parameter": member})
    info = site().engine.patch_query(name, state, resume, force=force, check=condition(_etag))
    return json_reply(query_json(info), etag=_etag(info))


@route(blueprint, "/queries/<name>", "DELETE", query=("force",))
def delete(name: str) -> Response:
    """Stop a query and remove it with its results (``force=true``: with those that read it)."""
    site().engine.delete_query(name, force=parameter("force", flag, False), check=condition(_etag))
    return no_content()


@route(blueprint, "/queries/<name>/restart", "POST", query=("reset", "force"))
def restart(name: str) -> Response:
    """Start a query again; ``reset=true`` begins a new epoch."""
    info = site().engine.restart_query(name, reset=parameter("reset", flag, False), force=parameter("force", flag, False),
                                       check=condition(_etag))
    return json_reply(query_json(info), 202)


@route(blueprint, "/queries/<name>/plan", "GET", query=("level",))
def plan(name: str) -> Response:
    """The plan: its nodes as JSON, or a stage of the compiler as text."""
    engine = site().engine
    level = parameter("level", choice(*STAGES), None)
    if best(JSON, TEXT) == TEXT:
        return reply(engine.plan(name, level or "logical").rstrip("\n") + "\n", TEXT)
    if level is None:
        return json_reply(engine.plan_nodes(name))
    return json_reply({"query": name, "level": level, "text": engine.plan(name, level)})


@route(blueprint, "/queries/<name>/stats", "GET")
def stats(name: str) -> Response:
    """Numbers of progress and lag, and of the last batches."""
    return json_reply(site().engine.stats(name))


def query_json(info: QueryInfo) -> dict[str, Any]:
    audience, sinks = site().audience, site().sinks
    sent = {"sink": sinks.sent(info.name, info.options["sink"]).to_json()} if sinks is not None and "sink" in info.options else {}
    links = {kind: path("queries", info.name, kind) for kind in ("results", "plan", "stats")}
    return {**info.to_json(), "subscribers": audience.subscribers(info.name) if audience else 0, **sent, "links": links}


def statement_text(types: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """The text of a query or rule program and the options beside it. The option ``media`` is the type of a program with its own time."""
    limit = site().limits.query_text
    media = body_type(types)
    text = text_body(limit + 4096 if media == JSON else limit if media != FORM else 3 * limit)
    options: dict[str, Any] = {}
    if media == JSON:
        options = json_object(text)
        text = options.pop("text", None)
        if not isinstance(text, str):
            raise Problem("json-syntax", "Expected a member 'text' with the query.", status=422)
        known_members(options, ("name", *OPTIONS))
        if options.get("media", TIMED_TYPES[0]) not in TIMED_TYPES:
            raise Problem("unknown-parameter", f"The member 'media' is one of {', '.join(TIMED_TYPES)}.", status=422,
                          extra={"parameter": "media"})
    elif media == FORM:
        text = _form_text(text)
    elif media in TIMED_TYPES:
        options["media"] = media
    elif media in RULE_TYPES and media_of(text) != media:
        raise Problem("rule-syntax", f"The body is said to be {media}, which begins with {BY_MEDIA[media].begins}.")
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        raise Problem("body-too-large", f"A query text may have {limit} bytes.", extra={"limit": limit, "actual": len(text.encode())})
    return text, options


def _form_text(text: str) -> str:
    """What plain ``curl -d`` or ``--data-urlencode`` sends: the statement itself, as typed or percent-encoded."""
    if text.lstrip().upper().startswith(("REGISTER", "PREFIX")):
        return text if any(c in text for c in " \n{") else unquote_plus(text)
    decoded = unquote_plus(text)
    if decoded.lstrip().upper().startswith("REGISTER"):
        return decoded
    raise Problem("unsupported-media-type", "A form body must be a statement that begins with REGISTER; else send another type.",
                  extra={"supported": list(STATEMENT_TYPES)}, headers={"Accept": ", ".join(STATEMENT_TYPES)})


def _register(text: str, name: str | None, options: dict[str, Any]) -> Response:
    if name is not None and not isinstance(name, str):
        raise Problem("bad-name", "The name must be a string.")
    media = options.get("media")
    site().registrations.take()
    info, created = site().engine.register(text, name, options, check=condition(_etag) if name is not None else unchecked)
    shown = {**query_json(info), "warnings": [diagnostic_json(warning) for warning in site().engine.warnings(text, media)]}
    return json_reply(shown, 201 if created else 200, etag=_etag(info), headers={"Location": path("queries", info.name)})


def _etag(info: QueryInfo) -> str:
    """Of what can be asked for: how far the engine is with it (``starting``, ``idle``) makes no other version."""
    state = info.state if info.state in ("paused", "failed") else "running"
    return etag_of([info.text, info.epoch, info.options, state, *([info.media] if info.media else [])])


@route(blueprint, "/explain", "POST", query=("level", "fail", "as"))
def explain() -> Response:
    """``{valid, errors, warnings, plan, estimate}``; a text with mistakes is a good answer, unless ``fail`` asks for a failure: with
    ``errors`` as at registration, with ``warnings`` also where there are any. With ``as=rules`` of a rule set."""
    as_rules = parameter("as", choice("query", "rules"), "query") == "rules"
    media: str | None
    if as_rules:
        media, text = body_type(RULE_SET_TYPES), text_body(site().limits.rule_text)
    else:
        text, options = statement_text(STATEMENT_TYPES)
        media = options.get("media")
    level, fail = parameter("level", choice(*STAGES), "logical"), parameter("fail", choice("errors", "warnings"), None)
    accept = best(JSON, TEXT)
    try:
        engine = site().engine      # a rule set has no plan before a query uses it
        found = {"plan": None, "clauses": engine.check_rules(media, text)} if as_rules else dict(engine.explain(text, level, media))
    except DiagnosticError as error:
        if fail is not None:
            raise
        if accept == TEXT:
            return reply(str(error) + "\n", TEXT)
        return json_reply({**_REFUSED, "errors": [diagnostic_json(d) for d in error.diagnostics]})
    except EngineError as error:
        if error.status != 422 or fail is not None:
            raise
        return json_reply({**_REFUSED, "errors": [{"code": error.slug, "detail": error.detail}]})
    warnings: list[Diagnostic] = found.pop("warnings", [])
    if warnings and fail == "warnings":
        raise Problem("has-warnings", warnings[0].message, errors=[diagnostic_json(d) for d in warnings])
    if accept == TEXT:
        lines = "".join(f"\nwarning: {warning.render()}\n" for warning in warnings)
        return reply(str(found.get("plan") or "").rstrip("\n") + "\n" + lines, TEXT)
    return json_reply({"valid": True, "errors": [], "estimate": None, **found, "warnings": [diagnostic_json(d) for d in warnings]})
