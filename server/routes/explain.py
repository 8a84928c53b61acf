"""``/explain``: check a text and show its plan; nothing is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response

from engine.ir.spans import Diagnostic, DiagnosticError
from engine.runtime.errors import EngineError
from grammar.rule_sets import RULE_SET_TYPES
from server.formats.media import JSON, TEXT
from server.parameters import choice
from server.problems import Problem, diagnostic_json
from server.routes.queries import LEVELS, STATEMENT_TYPES, statement_text
from server.web import best, body_type, json_reply, parameter, reply, route, site, text_body

blueprint = Blueprint("explain", __name__)
Explained = Callable[[str], dict[str, Any]]
_REFUSED: dict[str, Any] = {"valid": False, "errors": [], "warnings": [], "plan": None, "estimate": None}


@route(blueprint, "/explain", "POST", query=("level", "fail", "as"))
def explain() -> Response:
    """``{valid, errors, warnings, plan, estimate}``; a text with mistakes is a good answer, unless ``fail`` asks for a failure: with
    ``errors`` as at registration, with ``warnings`` also where there are any. With ``as=rules`` of a rule set."""
    explained = _of_rules() if parameter("as", choice("query", "rules"), "query") == "rules" else _of_statement()
    level, fail = parameter("level", choice(*LEVELS), "logical"), parameter("fail", choice("errors", "warnings"), None)
    accept = best(JSON, TEXT)
    try:
        found = explained(level)
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


def _of_statement() -> Explained:
    """The plan of the query or program of the request at a level."""
    text, options = statement_text(STATEMENT_TYPES)
    return lambda level: dict(site().engine.explain(text, level, options.get("media")))


def _of_rules() -> Explained:
    """The rule set of the request, which has no plan before a query uses it."""
    media, text = body_type(RULE_SET_TYPES), text_body(site().limits.rule_text)
    return lambda level: {"plan": None, "clauses": site().engine.check_rules(media, text)}
