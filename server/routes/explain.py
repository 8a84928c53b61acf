"""``/explain``: check a text and show its plan; nothing is registered."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from engine.ir.spans import Diagnostic, DiagnosticError
from engine.runtime.errors import EngineError
from server.formats.media import JSON, TEXT
from server.parameters import choice
from server.problems import Problem, diagnostic_json
from server.routes.queries import LEVELS, STATEMENT_TYPES, statement_text
from server.web import best, json_reply, parameter, reply, route, site

blueprint = Blueprint("explain", __name__)
_REFUSED: dict[str, Any] = {"valid": False, "errors": [], "warnings": [], "plan": None, "estimate": None}


@route(blueprint, "/explain", "POST", query=("level", "fail"))
def explain() -> Response:
    """``{valid, errors, warnings, plan, estimate}``; a text with mistakes is a good answer, unless ``fail`` asks for a failure: with
    ``errors`` as at registration, with ``warnings`` also where there are any."""
    text, options = statement_text(STATEMENT_TYPES)
    level, fail = parameter("level", choice(*LEVELS), "logical"), parameter("fail", choice("errors", "warnings"), None)
    accept = best(JSON, TEXT)
    try:
        found = dict(site().engine.explain(text, level, options.get("media")))
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
        return reply(str(found.get("plan", "")).rstrip("\n") + "\n" + lines, TEXT)
    return json_reply({"valid": True, "errors": [], "estimate": None, **found, "warnings": [diagnostic_json(d) for d in warnings]})
