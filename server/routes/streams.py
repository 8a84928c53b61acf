"""``/streams``: the catalogue, descriptors, pushes, the tail of the input and the dead letters."""

import hashlib
from typing import Any

from flask import Blueprint, Response, request

from engine.ir.terms import XSD
from engine.runtime.resources import OMITTED, Rejection, StreamInfo, TailEvent, iso
from engine.runtime.streams import check_pushable
from server.feeds.frames import jsonl
from server.feeds.driver import item_frame
from server.formats.columns import read_columns
from server.formats.items import Reader
from server.formats.media import JSON, JSONL, JSONLD, PUSH_TYPES, STREAMED_TYPES, TRIG, TURTLE
from server.formats.reading import read_items
from server.formats.results import dataset, stream_catalogue, stream_descriptor
from server.formats.values import GENERATED_AT, choice, count, flag, moment
from server.problems import Problem
from server.web import (best, body, body_type, condition, etag_of, json_object, json_reply, no_content, parameter, path, reply,
                        route, site, text_body)

blueprint = Blueprint("streams", __name__)


@route(blueprint, "/streams", "GET")
def catalogue() -> Response:
    """All streams, as JSON or as a VoCaLS catalogue."""
    infos = site().engine.streams()
    media = best(JSON, TURTLE, JSONLD)
    if media == JSON:
        return json_reply({"streams": [info.to_json() for info in infos]})
    return reply(stream_catalogue(infos, site().base_url, media), media)


@route(blueprint, "/streams/<name>", "PUT")
def put(name: str) -> Response:
    """Register a stream; the same again is no change, another descriptor a conflict."""
    media = body_type((JSON, TURTLE, JSONLD), JSON)
    if media == JSON:
        text = text_body(site().limits.json_body)
        descriptor = json_object(text) if text.strip() else {}
    else:
        descriptor = stream_descriptor(body(site().limits.json_body), media, site().limits, f"{site().base_url}/streams/{name}")
    info, created = site().engine.put_stream(name, descriptor, check=condition(_etag))
    return json_reply(info.to_json(), 201 if created else 200, etag=_etag(info), headers={"Location": path("streams", name)})


@route(blueprint, "/streams/<name>", "GET")
def get(name: str) -> Response:
    """The descriptor with the present state."""
    info = site().engine.stream(name)
    media = best(JSON, TURTLE, JSONLD)
    if media == JSON:
        return json_reply(info.to_json(), headers={"ETag": f'"{_etag(info)}"'})
    return reply(stream_catalogue([info], site().base_url, media), media)


@route(blueprint, "/streams/<name>", "DELETE", query=("force",))
def delete(name: str) -> Response:
    """Remove a stream that no query uses (or any, with ``force=true``)."""
    site().engine.delete_stream(name, force=parameter("force", flag, False), check=condition(_etag))
    return no_content()


@route(blueprint, "/streams/<name>", "POST", query=("watermark", "timestamp", "on-error"), kind="quick")
def push(name: str) -> Response:
    """Push items: all or none, unless ``on-error=skip``. Answered when they are on disk."""
    engine, limits = site().engine, site().limits
    info = engine.stream(name)
    check_pushable(name, info.descriptor)
    watermark, timestamp = parameter("watermark", moment, None), parameter("timestamp", moment, None)
    skip = parameter("on-error", choice("abort", "skip"), "abort") == "skip"
    if _has_no_body():
        if watermark is None:
            raise _nothing("The body is empty.")
        return _receipt(engine.push(name, [], watermark_ms=watermark, idempotency_key=_key(), digest=_digest(b"")))
    media = body_type(PUSH_TYPES)
    text = (body(limits.push_body_streamed) if media in STREAMED_TYPES else body(limits.push_body, limits.push_body_decompressed))
    wishes: dict[str, Any] = {"watermark_ms": watermark, "idempotency_key": _key(), "digest": _digest(text), "skip": skip}
    reader = Reader(info.descriptor.get("timestampPredicate") or GENERATED_AT, timestamp, info.descriptor.get("time") == "event", skip,
                    limits)
    table = read_columns(text, media, reader)
    if table is not None:
        return _receipt(engine.push_table(name, table, **wishes))
    reading = read_items(text, media, reader, base=info.iri)
    rejected = [_rejection(problem) for problem in reading.problems]
    if not reading.items and not rejected and watermark is None:
        raise _nothing("The body holds no item.")
    return _receipt(engine.push(name, reading.items, rejected=rejected, **wishes), reading.problems[:limits.push_errors_listed])


@route(blueprint, "/streams/<name>/items", "GET", query=("limit", "since"))
def items(name: str) -> Response:
    """The last items of the input, oldest first, after the id ``since``; server/hub.py serves the live tail."""
    info = site().engine.stream(name)
    limit, since = parameter("limit", count(site().limits.page), 100), parameter("since", count(1 << 62), 0)
    part = site().engine.tail_part(name, limit, since)
    events = part.events
    headers = {"RSP-Truncated": "true"} if "since" in request.args and not part.whole else {}
    media = best(JSONL, TRIG)
    if media == JSONL:
        return reply(b"".join(jsonl(item_frame(event)) for event in events), JSONL, headers=headers)
    predicate = f"<{info.descriptor.get('timestampPredicate') or GENERATED_AT}>"
    return reply(dataset((_stamped(event, predicate) for event in events), TRIG), TRIG, headers=headers)


@route(blueprint, "/streams/<name>/dead-letters", "GET")
def dead_letters(name: str) -> Response:
    """The last items that were not taken, with the reasons."""
    letters = site().engine.dead_letters(name)
    shown = [{"position": letter.position, "reason": letter.reason, "time": iso(letter.t_ms), "text": letter.text,
              **({"truncated": True, "more": letter.more} if letter.more else {})} for letter in letters]
    total = site().engine.stream(name).state["deadLetters"]
    told = sum(letter.reason != OMITTED for letter in letters)
    return json_reply({"deadLetters": shown, "total": total, "truncated": total > told})


def _etag(info: StreamInfo) -> str:
    return etag_of(info.descriptor)


def _has_no_body() -> bool:
    """Whether the request is known to have no bytes after its head."""
    length = request.environ.get("CONTENT_LENGTH")
    return length == "0" or not (length or request.environ.get("wsgi.input_terminated"))


def _key() -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= 255 and key.isprintable()):
        raise Problem("bad-request", "An Idempotency-Key has 1 to 255 printable characters.")
    return key


def _digest(text: bytes) -> str | None:
    """What stands for the request where it has an idempotency key."""
    if _key() is None:
        return None
    return hashlib.sha256(b"\n".join((request.query_string, request.mimetype.encode(), text))).hexdigest()


def _receipt(receipt: Any, problems: Any = ()) -> Response:
    """202 with the receipt; 422 where all that there was has been refused."""
    shown = receipt.to_json()
    if problems and not receipt.repeated:
        listed = [{"code": problem.slug, "detail": problem.detail, **dict(*problem.errors[:1])} for problem in problems]
        shown["errors"] = listed + [error for error in shown["errors"] if "item" in error]
    headers = {"Idempotency-Replayed": "true"} if receipt.repeated else {}
    if receipt.refused:
        slug = problems[0].slug if problems else "timestamp-ahead" if any("item" in e for e in receipt.errors) else "rdf-syntax"
        raise Problem(slug, f"All items were refused: {receipt.rejected}.", 422, shown.pop("errors"), shown, headers)
    return json_reply(shown, 202, headers=headers)


def _nothing(detail: str) -> Problem:
    hint = "A push holds an item, or says ?watermark= of a stream on which nothing came."
    return Problem("bad-request", f"{detail} {hint}", extra={"hint": hint})


def _rejection(problem: Problem) -> Rejection:
    error = problem.errors[0] if problem.errors else {}
    place = error.get("item") or (f"line {error['location']['line']}" if "location" in error else None)
    return Rejection(f"{problem.slug}: {problem.detail}", place, error.get("snippet"))


def _stamped(event: TailEvent, predicate: str) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
    """An item as TriG shows it: a named graph and the time stamp of its name."""
    name = event.graph or f"_:item{event.position}"
    return name, event.triples, ((name, predicate, f'"{iso(event.t_ms)}"^^<{XSD}dateTime>'),)
