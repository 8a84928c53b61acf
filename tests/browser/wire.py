"""Requests and replies of the stand-in server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: str


@dataclass
class Reply:
    status: int = 200
    body: Any = ""
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Refused(Exception):
    """A problem body to be sent."""

    def __init__(self, status: int, slug: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"type": f"http://localhost/problems/{slug}", "title": slug.replace("-", " ").capitalize(), "status": status,
                     "detail": detail, **members}
