"""``/rules``: the rule sets that ``USING RULES`` may name."""

from __future__ import annotations

from flask import Blueprint, Response

from server.problems import Problem
from server.web import json_reply, route, site

blueprint = Blueprint("rules", __name__)


@route(blueprint, "/rules", "GET")
def listing() -> Response:
    """All rule sets; the built-in ones cannot be changed."""
    return json_reply({"rules": [info.to_json() for info in site().engine.rule_sets()]})


@route(blueprint, "/rules/<name>", "GET")
def get(name: str) -> Response:
    """One rule set."""
    for info in site().engine.rule_sets():
        if info.name == name:
            return json_reply(info.to_json())
    raise Problem("no-such-rules", f"There is no rule set {name!r}.", extra={"name": name})
