"""The Flask application: everything but the live feeds (server/hub.py), which a WSGI host cannot serve to many.

Everything is resolved before the response starts; every error ends in the one problem body.
"""

from typing import Any

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from server import guard
from server.problems import Problem, form_for, from_error, unknown_parameter
from server.routes import graphs, info, queries, results, sparql, streams
from server.web import Site, site

POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"


def create_app(engine: Any, own: Site | None = None) -> Flask:
    """The application around an engine (engine.runtime.service.Engine, or anything with its surface)."""
    app = Flask("thalweg", static_folder=None)
    app.extensions["thalweg"] = own or Site(engine)
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.before_request(_check)
    app.after_request(_harden)
    app.register_error_handler(Exception, _problem)
    for module in (info, streams, queries, results, graphs, sparql):
        app.register_blueprint(module.blueprint)
    return app


def _check() -> Response | None:
    """Refuse foreign hosts and sites, unknown parameters, an engine that is not there yet. Preflights are answered here."""
    own = site()
    view: Any = current_app.view_functions[request.endpoint] if request.endpoint else None
    if (answer := guard.preflight(request.method, request.headers.get, own.hosts, own.origins)) is not None:
        return Response(status=204, headers=answer)
    guard.check(request.method, request.headers.get, own.hosts, own.origins, view is not None and view.page, own.base_url)
    if view is None:
        return None
    for name in request.args if not view.other_parameters else ():
        if name not in view.query_parameters:
            raise unknown_parameter(name, view.query_parameters)
        if len(request.args.getlist(name)) > 1:
            raise Problem("two-queries" if name == "query" else "unknown-parameter", f"The parameter {name!r} is given more than once.",
                          extra={"parameter": name})
    if not own.engine.ready and not view.while_starting:
        raise unavailable(own.engine)
    return None


def unavailable(engine: Any) -> Problem:
    if engine.state == "stopping":
        return Problem("shutting-down", "The server is shutting down.")
    if engine.state == "failed":
        return Problem("engine-failed", f"The engine has failed: {engine.progress}")
    return Problem("engine-starting", f"The engine is starting: {engine.progress}", extra={"state": engine.state})


def _harden(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "no-referrer")
    response.headers.setdefault("Content-Security-Policy", POLICY)
    for name, value in guard.cors_headers(request.headers.get, site().origins):
        response.headers.add(name, value)
    return response


def _problem(error: Exception) -> Response:
    problem = _from_http(error) if isinstance(error, HTTPException) else from_error(error)
    data, media = problem.render(form_for(request.headers.get("Accept", "")), request.url_root.rstrip("/"))
    response = Response(data, problem.status, content_type=media)
    response.headers.update(problem.headers)
    response.headers["Vary"] = "Accept"
    return response


def _from_http(error: HTTPException) -> Problem:
    if isinstance(error, MethodNotAllowed):
        allowed = sorted(error.valid_methods or ())
        return Problem("method-not-allowed", f"{request.method} is not allowed here; {', '.join(allowed)} are.",
                       extra={"allowed": allowed}, headers={"Allow": ", ".join(allowed)})
    if error.code == 404:
        return Problem("not-found", f"There is nothing at {request.path[:200]}.")
    return Problem("bad-request", error.description or str(error), status=error.code or 400)
