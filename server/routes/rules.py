"""``/rules``: the rule sets that ``USING RULES`` may name."""

from __future__ import annotations

from operator import attrgetter

from flask import Blueprint, Response

from engine.runtime.resources import RuleSetInfo
from grammar.rule_sets import RULE_SET_TYPES
from server.formats.media import JSON, TEXT
from server.web import best, body_type, condition, json_reply, no_content, path, reply, route, site, text_body

blueprint = Blueprint("rules", __name__)


@route(blueprint, "/rules", "GET")
def listing() -> Response:
    """All rule sets; the built-in ones cannot be changed."""
    return json_reply({"rules": [info.to_json() for info in site().engine.rule_sets()]})


@route(blueprint, "/rules/<name>", "GET")
def get(name: str) -> Response:
    """One rule set; its text where ``Accept`` names the type that it has."""
    info: RuleSetInfo = site().engine.rule_set(name)
    if info.text is None or info.media is None:
        return json_reply(info.to_json(), etag=info.etag)
    media = best(JSON, info.media, TEXT)
    if media == JSON:
        return json_reply({**info.to_json(), "text": info.text}, etag=info.etag)
    return reply(info.text, media, etag=info.etag)


@route(blueprint, "/rules/<name>", "PUT")
def put(name: str) -> Response:
    """Set or replace a rule set; the queries that use it are planned anew."""
    media = body_type(RULE_SET_TYPES)
    text = text_body(site().limits.rule_text)
    info, created = site().engine.put_rules(name, media, text, check=condition(attrgetter("etag")))
    return json_reply(info.to_json(), 201 if created else 200, etag=info.etag, headers={"Location": path("rules", name)})


@route(blueprint, "/rules/<name>", "DELETE")
def delete(name: str) -> Response:
    """Remove a rule set that no query uses."""
    site().engine.delete_rules(name, check=condition(attrgetter("etag")))
    return no_content()
