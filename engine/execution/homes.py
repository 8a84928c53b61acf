"""In which shard a query is evaluated that is not divided among all of them."""

from collections import Counter


class Homes:
    """Spreads queries over so many shards, and leaves each where it is: what is kept for it is there. Those that have something in common,
    which is then made once, are in one shard."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._found: dict[str, tuple[frozenset[str], int]] = {}

    def of(self, query: str, needs: frozenset[str]) -> int:
        """The shard of a query that `needs` some things, by their names: where another needs one of them, else where fewest queries are."""
        known = self._found.get(query)
        if known is None or known[0] != needs:
            self.forget(query)
            shared = next((shard for others, shard in self._found.values() if not others.isdisjoint(needs)), None)
            queries = Counter(shard for _, shard in self._found.values())
            fewest = min(range(self._shards), key=lambda shard: (queries[shard], shard))
            known = self._found[query] = needs, fewest if shared is None else shared
        return known[1]

    def forget(self, query: str) -> None:
        """The query is gone."""
        self._found.pop(query, None)
