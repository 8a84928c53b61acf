"""The routes of docs/http-api.md, one blueprint per resource."""

from __future__ import annotations

from server.routes.graphs import blueprint as graphs
from server.routes.info import blueprint as info
from server.routes.queries import blueprint as queries
from server.routes.results import blueprint as results
from server.routes.rules import blueprint as rules
from server.routes.sparql import blueprint as sparql
from server.routes.streams import blueprint as streams

ALL = (info, streams, queries, results, graphs, rules, sparql)
