"""Why the engine refused a command: a problem slug of docs/http-api.md with its HTTP status; and why the evaluator failed, in words."""

import errno
import sqlite3
from collections.abc import Sequence
from typing import Any

_LONGEST_LINE = 300
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_SQLITE_NO_ROOM = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE))


class EngineError(Exception):
    """A refusal: `slug` and `status` are those of the problem table, `extra` are members of the problem document."""

    def __init__(self, slug: str, status: int, detail: str, extra: dict[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.slug = slug
        self.status = status
        self.detail = detail
        self.extra = extra or {}


def not_found(kind: str, name: str) -> EngineError:
    """404 for a stream, query, graph or rule set; `kind` is the end of the slug (``no-such-stream``)."""
    noun = {"stream": "stream", "query": "query", "graph": "graph", "rules": "rule set"}[kind]
    return EngineError(f"no-such-{kind}", 404, f"There is no {noun} {name!r}.", {"name": name})


def conflict(detail: str, **extra: Any) -> EngineError:
    """409: the name is taken by something else."""
    return EngineError("name-exists", 409, detail, extra)


def in_use(detail: str, users: Sequence[str]) -> EngineError:
    """409: queries use what a command would change."""
    return EngineError("in-use", 409, detail, {"usedBy": list(users)})


def unavailable(slug: str, detail: str, retry_after_s: int = 2) -> EngineError:
    """503 with the number of seconds after which to try again."""
    return EngineError(slug, 503, detail, {"retryAfter": retry_after_s})


def disk_full(detail: str) -> EngineError:
    """507: the log or the database cannot grow."""
    return EngineError("disk-full", 507, detail)


def is_full(failure: BaseException) -> bool:
    """Whether something could not be written because there is no room: the same may work later."""
    if isinstance(failure, sqlite3.OperationalError):
        return getattr(failure, "sqlite_errorcode", None) in _SQLITE_NO_ROOM
    if isinstance(failure, EngineError):
        return failure.slug == "disk-full"
    return isinstance(failure, OSError) and failure.errno in _FULL


def plain(failure: BaseException) -> str:
    """A failure of the evaluator in one line, for people; the server's log has the whole of it."""
    if isinstance(failure, ConnectionError) or type(failure).__name__ == "Py4JNetworkError":
        return "Spark's JVM has ended"
    text = str(failure).strip() or type(failure).__name__
    if text.startswith("[STREAM_FAILED]"):
        reason = text.partition("terminated with exception: ")[2].strip()
        text = f"A streaming query of Spark's has failed: {reason or 'no reason is given'}"
    return text.splitlines()[0][:_LONGEST_LINE]
