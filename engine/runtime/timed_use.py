"""What a program, or a query that uses rules, with a time of its own reads stays as it is: what it has derived cannot be taken back."""

from __future__ import annotations

from engine.runtime.catalogue import Catalogue
from engine.runtime.errors import EngineError


def check_rederived(catalogue: Catalogue, graph: str) -> None:
    """Refuse another version of a graph that such a query uses: 409 ``in-use``."""
    users = sorted(query.name for query in catalogue.queries.values() if query.statement.keeps_state and graph in query.graphs)
    if users:
        raise EngineError("in-use", 409, f"The query {users[0]!r} has derived facts from the graph <{graph}>, which stay: "
                          "remove it first, or register it anew afterwards.", {"usedBy": users})
