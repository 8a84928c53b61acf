"""Whether a worker on an executor finds what it needs: the packages, and a folder that it shares with the driver. Nothing is imported here
that a bare Python lacks."""

import socket
import time
from collections.abc import Iterable, Iterator

_SPREAD_S = 0.5     # how long a task keeps its core, so that each core has one


def look(path: str, token: str, part: Iterable[int]) -> Iterator[tuple[str, str | None]]:
    """Nothing where all is well; else the host, and why what a worker runs cannot be imported; None where `path` does not have the token,
    or nothing can be written beside it."""
    time.sleep(_SPREAD_S)
    try:
        import engine.worker.bundles  # noqa: F401
    except ImportError as failure:
        yield socket.gethostname(), (str(failure).strip() or type(failure).__name__).splitlines()[0]
        return
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == token:
                with open(f"{path}-{'-'.join(map(str, part))}", "w", encoding="utf-8"):
                    return
    except OSError:
        pass
    yield socket.gethostname(), None
