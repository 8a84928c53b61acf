"""Errors as ``application/problem+json`` (RFC 9457): one table of slugs, one exception, one body in three forms.

Everything that goes wrong in a request ends as a `Problem`; `from_error` turns diagnostics of a text, errors of the engine and
unforeseen exceptions into one.
"""

import html
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from engine.ir.spans import Diagnostic, DiagnosticError
from engine.runtime.errors import EngineError
from grammar.rule_sets import OWN_PROBLEMS

log = logging.getLogger("thalweg.server")

# slug: (status, title)
SLUGS: dict[str, tuple[int, str]] = {
    "query-syntax": (400, "The query text is not valid"),
    "rdf-syntax": (400, "The RDF is not valid"),
    "json-syntax": (400, "The JSON is not valid"),
    "rule-syntax": (400, "The rule text is not valid"),
    "unknown-parameter": (400, "A parameter, or a member of the body, is not known here, or not valid"),
    "bad-name": (400, "The name cannot be used"),
    "bad-request": (400, "The request cannot be read"),
    "two-queries": (400, "The request holds two queries"),
    "token-missing": (401, "A token is needed"),
    "token-scope": (403, "The token does not allow this"),
    "cross-site-request": (403, "The request comes from another site"),
    "not-found": (404, "There is nothing at this address"),
    "no-such-stream": (404, "There is no such stream"),
    "no-such-query": (404, "There is no such query"),
    "no-such-graph": (404, "There is no such graph"),
    "no-such-rules": (404, "There is no such rule set"),
    "no-such-result": (404, "There is no such result"),
    "no-longer-kept": (410, "What this was made from is no longer kept"),
    "query-removed": (410, "The query was removed"),
    "method-not-allowed": (405, "The method is not allowed here"),
    "not-acceptable": (406, "None of the accepted types can be given"),
    "unsupported-media-type": (415, "The type of the body is not supported here"),
    "name-exists": (409, "The name is taken"),
    "in-use": (409, "It is in use"),
    "bad-transition": (409, "The state does not allow this"),
    "etag-mismatch": (412, "It has changed meanwhile"),
    "body-too-large": (413, "The body is too large"),
    "item-too-large": (413, "An item is too large"),
    "too-many-triples": (413, "An item, push or graph has too many triples"),
    "nesting-too-deep": (413, "The body is nested too deeply"),
    "headers-too-large": (431, "The head of the request is too large"),
    "untrusted-host": (421, "The host name is not one of this server's"),
    "unknown-stream": (422, "The query names a stream that is not registered"),
    "name-mismatch": (422, "The name in the text is not the name in the address"),
    "window-unbounded": (422, "A window has no bound"),
    "query-too-large": (422, "The query has more parts than it may have"),
    "over-limit": (422, "It goes over a limit"),
    "step-not-supported": (422, "The STEP is not supported"),
    "bad-descriptor": (422, "The stream descriptor is not valid"),
    "watermark-ahead": (422, "The watermark is ahead of the clock"),
    "timestamp-ahead": (422, "An item is stamped too far ahead of the clock"),
    "idempotency-key-reused": (422, "The idempotency key belongs to another request"),
    "missing-timestamp": (422, "An item has no time stamp"),
    "remote-context-disabled": (422, "A JSON-LD context would have to be fetched"),
    "fetch-not-allowed": (422, "Nothing is fetched from the network"),
    "service-disabled": (422, "SERVICE is disabled"),
    **{code: (422, meaning) for code, meaning in OWN_PROBLEMS.items()},
    "rules-unsafe": (422, "A rule is not safe"),
    "rules-not-forward": (422, "A rule reaches back from what is yet to come"),
    "unsupported-in-streaming": (422, "This is not supported"),
    "has-warnings": (422, "The text is valid and has warnings"),
    "window-not-kept": (422, "The window shows items that are not kept"),
    "rate-limited": (429, "Too many requests"),
    "quota-queries": (429, "Too many queries"),
    "quota-streams": (429, "Too many streams"),
    "quota-graphs": (429, "Too many static graphs, or triples in them"),
    "quota-rules": (429, "Too many rule sets, or too much text in them"),
    "quota-subscribers": (429, "Too many subscribers"),
    "quota-errors": (429, "Too many errors"),
    "query-failed": (500, "The query failed"),
    "not-explained": (422, "No proof can be given"),
    "internal": (500, "Something went wrong inside Thalweg"),
    "update-not-supported": (501, "SPARQL Update is not supported"),
    "engine-starting": (503, "The engine is starting"),
    "engine-restarting": (503, "Spark is started again"),
    "engine-failed": (503, "The engine has failed"),
    "engine-overloaded": (503, "The engine is behind"),
    "shutting-down": (503, "The server is shutting down"),
    "data-in-use": (503, "Another process uses the data folder"),
    "query-timeout": (503, "The query took too long"),
    "disk-full": (507, "The log cannot grow"),
}

MEDIA = "application/problem+json"
_FORMS = {MEDIA: "json", "application/json": "json", "*/*": "json", "application/*": "json", "text/plain": "text", "text/html": "html",
          "application/xhtml+xml": "html"}


@dataclass
class Problem(Exception):
    """One error of a request. `extra` are further members of the body, `headers` go with the response."""

    slug: str
    detail: str
    status: int = 0
    errors: Sequence[Mapping[str, Any]] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.detail)
        status, title = SLUGS.get(self.slug, (500, self.slug.replace("-", " ")))
        self.status = self.status or status
        self.title = self.title or title
        if self.status in (429, 503) and "Retry-After" not in self.headers:
            self.headers = {**self.headers, "Retry-After": str(self.extra.get("retryAfter", 2))}

    def body(self, base: str = "") -> dict[str, Any]:
        """The members of RFC 9457, with `base` (scheme, host, base path) before the type."""
        members: dict[str, Any] = {"type": f"{base}/problems/{self.slug}", "title": self.title, "status": self.status,
                                   "detail": self.detail, "instance": f"urn:uuid:{uuid.uuid4()}"}
        if self.errors:
            members["errors"] = list(self.errors)
        return {**members, **self.extra}

    def text(self) -> str:
        """What a person at a terminal wants to read, with the caret line."""
        lines = [f"{self.status} {self.slug}: {self.title}"]
        if not self.errors or self.detail not in {e.get("detail") for e in self.errors}:
            lines.append(self.detail)
        for error in self.errors:
            lines += _error_lines(error)
        lines += [f"{name}: {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
                  for name, value in self.extra.items()]
        return "\n".join(lines) + "\n"

    def page(self) -> str:
        """A small page without any script."""
        return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{self.status} {html.escape(self.title)}</title>'
                f'<h1>{html.escape(self.title)}</h1><pre>{html.escape(self.text())}</pre></html>')

    def render(self, form: str, base: str = "") -> tuple[bytes, str]:
        """Body and content type; `form` is ``json``, ``text`` or ``html``."""
        if form == "text":
            return self.text().encode("utf-8", "replace"), "text/plain; charset=utf-8"
        if form == "html":
            return self.page().encode("utf-8", "replace"), "text/html; charset=utf-8"
        return dumps(self.body(base)), MEDIA


def dumps(value: Any) -> bytes:
    """JSON on one line; lone surrogates (which no encoder takes) become question marks."""
    try:
        return orjson.dumps(value, default=str)
    except (TypeError, ValueError):
        return orjson.dumps(_encodable(value), default=str)


def diagnostic_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as a member of ``errors``."""
    error: dict[str, Any] = {"code": diagnostic.code, "detail": diagnostic.message}
    if diagnostic.span is not None:
        span = diagnostic.span
        error["location"] = {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}
        error["snippet"] = span.snippet()
    for name in ("note", "hint"):
        if getattr(diagnostic, name):
            error[name] = getattr(diagnostic, name)
    return error


def from_diagnostics(error: DiagnosticError) -> Problem:
    """The first diagnostic decides the slug; all are listed."""
    first = error.diagnostics[0]
    slug = first.code if first.code in SLUGS else "unsupported-in-streaming"
    status = SLUGS[slug][0]
    # A text that names an unknown graph was found; it is the text that cannot be processed.
    return Problem(slug, first.message, 422 if status == 404 else status, errors=[diagnostic_json(d) for d in error.diagnostics])


def from_error(error: BaseException) -> Problem:
    """Any exception as a problem; what nobody foresaw is logged under the id that the client gets."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, DiagnosticError):
        return from_diagnostics(error)
    if isinstance(error, EngineError):
        extra = dict(error.extra or {})
        headers = {"Allow": ", ".join(extra["allowed"])} if "allowed" in extra else {}
        return Problem(error.slug, error.detail, status=error.status, errors=extra.pop("errors", ()), extra=extra, headers=headers)
    request_id = str(uuid.uuid4())
    log.error("request %s failed", request_id, exc_info=error)
    return Problem("internal", "The request failed inside the server; its log has more under the request id.",
                   extra={"requestId": request_id})


def head_too_large(most: int) -> Problem:
    return Problem("headers-too-large", f"The head of a request may have {most} bytes.", extra={"limit": most})


def unknown_parameter(name: str, known: Iterable[str]) -> Problem:
    return Problem("unknown-parameter", f"There is no parameter {name[:100]!r} here.",
                   extra={"parameter": name[:100], "known": sorted(known)})


def form_for(accept: str) -> str:
    """``json``, ``text`` or ``html`` for an Accept header (``*/*`` and everything else get JSON)."""
    ranges = (part.split(";")[0].strip().lower() for part in accept.split(","))
    return next((_FORMS[media] for media in ranges if media in _FORMS), "json")


def _error_lines(error: Mapping[str, Any]) -> list[str]:
    place = error.get("location")
    where = f"line {place['line']}, column {place['column']}: " if place and "column" in place else (
        f"line {place['line']}: " if place else "")
    lines = [where + str(error.get("detail", ""))]
    if "item" in error:
        lines[0] = f"item {error['item']}: " + lines[0]
    if "snippet" in error:
        lines.append(str(error["snippet"]))
    return lines + [f"{name}: {error[name]}" for name in ("note", "hint") if name in error]


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_encodable(str(k)): _encodable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(v) for v in value]
    return value
