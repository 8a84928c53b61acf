"""Wait until the server at the URL given runs with its demo, and read a live result of its queries as a user would.

The second argument is the process to watch: when it ends there is nothing to wait for.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

READY_WITHIN_S = 240
RESULT_WITHIN_S = 60
QUERIES = ("weather-averages", "weather-coast")


def get(url: str, accept: str = "application/json", timeout: float = 10) -> Any:
    """An open response."""
    return urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=timeout)


def runs(process: int) -> bool:
    """Whether the process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(what: str, seconds: float, attempt: Callable[[], bool], process: int) -> None:
    """Call `attempt` until it is true; anything the network says meanwhile counts as not yet."""
    began = time.monotonic()
    last = "nothing yet"
    while time.monotonic() - began < seconds:
        if not runs(process):
            sys.exit(f"{what}: the server has ended")
        try:
            if attempt():
                print(f"    {what} after {time.monotonic() - began:.1f} s", flush=True)
                return
            last = "not yet"
        except (OSError, ValueError) as failure:
            last = str(failure)
        time.sleep(0.3)
    sys.exit(f"{what}: not within {seconds} s ({last})")


def first_rows(url: str) -> bool:
    """Whether the live feed gives a result with rows within its first events."""
    with get(f"{url}/results", "text/event-stream", timeout=RESULT_WITHIN_S) as feed:
        for line in feed:
            if line.startswith(b"data:") and json.loads(line[5:]).get("results", {}).get("bindings"):
                return True
    return False


def main(base: str, process: int) -> int:
    """Ready, page, live rows."""
    wait_for("ready", READY_WITHIN_S, lambda: get(f"{base}/health/ready").status == 200, process)
    wait_for("page", 10, lambda: b"<html" in get(base + "/", "text/html").read().lower(), process)
    for name in QUERIES:
        wait_for(f"live rows of {name}", RESULT_WITHIN_S, partial(first_rows, f"{base}/queries/{name}"), process)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
