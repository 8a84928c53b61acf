"""Random bodies through the routes that take RDF, every format: a receipt or a problem, never a 500, never more than a second of work."""

from __future__ import annotations

import gzip
import random
import time

import pytest
from flask.testing import FlaskClient

from server.formats import media
from server.problems import MEDIA
from tests.server.conftest import TEMPS
from tests.server.fake_engine import FakeEngine
from tests.server.test_reading import SAMPLES, broken

LONGEST = 2.0   # seconds of this thread: on a busy machine the clock on the wall says little
PUSHES = [("/streams/temps", kind) for kind in media.PUSH_TYPES] + [("/streams/events", kind) for kind in media.PUSH_TYPES]
GRAPHS = [("/graphs?default", kind) for kind in media.GRAPH_TYPES]


# Graphs take no names of graphs: samples without.
UNNAMED = {media.TRIG: SAMPLES[media.TURTLE], media.NQUADS: SAMPLES[media.NTRIPLES],
           media.JSONLD: '{"@id": "http://a", "http://b": [1, {"@value": "x", "@language": "en"}]}'}


def body(chance: random.Random, kind: str, sample: str) -> tuple[bytes, dict[str, str]]:
    """A broken sample; now and then mere bytes, or a broken archive. With the headers that go with it."""
    data, headers = broken(chance, sample), {"Content-Type": kind}
    match chance.randrange(20):
        case 0:
            data = chance.randbytes(chance.randrange(200))
        case 1:
            data, headers["Content-Encoding"] = gzip.compress(data), "gzip"
            data = data[:chance.randrange(len(data))] + chance.randbytes(chance.randrange(3))
        case 2:
            data = data * chance.choice((2, 10, 100))
        case 3:
            headers["Content-Type"] += chance.choice(("; charset=utf-8", "; charset=latin-1", ";", "; =", "x"))
    return data, headers


def fuzz(client: FlaskClient, engine: FakeEngine, path: str, kind: str, count: int) -> None:
    chance, kinds = random.Random(f"{path} {kind}"), set[int]()
    method = "PUT" if path.startswith("/graphs") else "POST"
    wishes = ["", "", "on-error=skip", "timestamp=2026-11-21T05:00:00Z", "watermark=1795237200000"] if method == "POST" else [""]
    for number in range(count):
        data, headers = body(chance, kind, UNNAMED.get(kind, SAMPLES[kind]) if path.startswith("/graphs") else SAMPLES[kind])
        wish = chance.choice(wishes)
        start = time.thread_time()
        reply = client.open(f"{path}{'?' if wish else ''}{wish}", method=method, data=data, headers=headers)
        told = f"body {number} of {path} {kind} {wish} {headers}: {data[:1000]!r}: {reply.text[:500]}"
        assert time.thread_time() - start < LONGEST, told
        assert reply.status_code in (200, 201, 202, 204) or 400 <= reply.status_code < 500 and reply.content_type == MEDIA, told
        kinds.add(reply.status_code // 100)
        engine.forget()
    assert 4 in kinds and (2 in kinds or path == "/streams/events"), "some are good, but for what has no time stamp, and some are refused"


@pytest.fixture
def streams(client: FlaskClient) -> FlaskClient:
    """The client, with one stream of each kind of time."""
    assert client.put("/streams/temps", json=TEMPS).status_code == 201
    assert client.put("/streams/events", json={"iri": "http://ex.org/events", "time": "event"}).status_code == 201
    return client


@pytest.mark.parametrize(("path", "kind"), [*PUSHES, *GRAPHS])
def test_200_random_bodies(streams: FlaskClient, engine: FakeEngine, path: str, kind: str) -> None:
    fuzz(streams, engine, path, kind, 200)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("path", "kind"), [*PUSHES, *GRAPHS])
def test_10000_random_bodies(streams: FlaskClient, engine: FakeEngine, path: str, kind: str) -> None:
    fuzz(streams, engine, path, kind, 10_000)


def test_every_format_has_a_sample() -> None:
    assert set(media.PUSH_TYPES) | set(media.GRAPH_TYPES) <= set(SAMPLES)
