"""``/explain``: check a text and show its plan; nothing is registered."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from engine.ir.spans import DiagnosticError
from engine.runtime.errors import EngineError
from server.formats.media import JSON, TEXT
from server.parameters import choice
from server.problems import diagnostic_json
from server.routes.queries import LEVELS, STATEMENT_TYPES, statement_text
from server.web import best, json_reply, parameter, reply, route, site

blueprint = Blueprint("explain", __name__)


@route(blueprint, "/explain", "POST", query=("level",), kind="one-shot")
def explain() -> Response:
    """``{valid, errors, plan, estimate}``; a text with mistakes is a good answer, not a failed request."""
    text, _ = statement_text(STATEMENT_TYPES)
    level = parameter("level", choice(*LEVELS), "logical")
    accept = best(JSON, TEXT)
    try:
        found = site().engine.explain(text, level)
    except DiagnosticError as error:
        if accept == TEXT:
            return reply(str(error) + "\n", TEXT)
        return json_reply({"valid": False, "errors": [diagnostic_json(d) for d in error.diagnostics], "plan": None, "estimate": None})
    except EngineError as error:
        if error.status != 422:
            raise
        return json_reply({"valid": False, "errors": [{"code": error.slug, "detail": error.detail}], "plan": None, "estimate": None})
    described: dict[str, Any] = found if isinstance(found, dict) else {"plan": found}
    if accept == TEXT:
        return reply(str(described.get("plan", "")).rstrip("\n") + "\n", TEXT)
    return json_reply({"valid": True, "errors": [], "estimate": None, **described})
