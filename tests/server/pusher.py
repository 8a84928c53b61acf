"""A pusher that loses nothing and sends nothing twice: it keeps what it is about to send, and under which key, in a file.

A push that was not answered is sent again with its own Idempotency-Key, by this pusher or by the next one that reads the file.
"""

from __future__ import annotations

import http.client
import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Unanswered(Exception):
    """The server went away before it answered."""


@dataclass(slots=True)
class Journal:
    """Lines of JSON: a number with its key before it is sent, a number alone once it is answered."""

    path: Path
    keys: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            entry = json.loads(line)
            if "key" in entry:
                self.keys[entry["number"]] = entry["key"]
            else:
                self.done.add(entry["number"])

    def key(self, number: int) -> str:
        """The key of a push, on disk before it is used."""
        if number not in self.keys:
            self.keys[number] = uuid.uuid4().hex
            self._write({"number": number, "key": self.keys[number]})
        return self.keys[number]

    def answered(self, number: int) -> None:
        self.done.add(number)
        self._write({"number": number})

    def _write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


class Pusher:
    """Sends pushes in order, from the first that the journal does not know to be answered."""

    def __init__(self, base: str, path: str, pushes: Sequence[bytes], media: str, journal: Path) -> None:
        self.journal = Journal(journal)
        self.repeated = 0
        self.connect(base)
        self._path, self._pushes, self._media = path, pushes, media

    def connect(self, base: str) -> None:
        """Send to this server from now on."""
        address = urlsplit(base)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)

    def remaining(self) -> list[int]:
        """The numbers of the pushes that are still to be sent."""
        return [number for number in range(len(self._pushes)) if number not in self.journal.done]

    def send(self, number: int) -> dict[str, Any]:
        """Send one push and note its answer; Unanswered where the server did not live to give one."""
        headers = {"Content-Type": self._media, "Idempotency-Key": self.journal.key(number), "Accept": "application/json"}
        try:
            self._connection.request("POST", self._path, self._pushes[number], headers)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as gone:
            self._connection.close()
            raise Unanswered(f"push {number}") from gone
        assert answer.status == 202, f"push {number}: {answer.status} {body[:500]!r}"
        self.repeated += answer.headers.get("Idempotency-Replayed") == "true"
        self.journal.answered(number)
        receipt: dict[str, Any] = json.loads(body)
        return receipt
