"""The demo: weather stations in the style of SRBench, three registered queries, and a thread that feeds the stream.

Each second every station sends one item with three observations (air temperature, relative humidity, wind speed). The values are
a function of (seed, station, number of the second), so two demos show the same weather; the time stamps are those of arrival.
The texts of the queries and the graph of classes are files in ``static/examples``, where the console offers them too.
"""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph

from engine.ir.terms import RDF_TYPE, XSD
from engine.records import Triple
from engine.runtime.errors import EngineError
from engine.runtime.resources import Item

if TYPE_CHECKING:
    from engine.runtime.service import Engine

EXAMPLES = Path(__file__).resolve().parents[1] / "static" / "examples"
STREAM = "weather"
STREAM_IRI = "http://example.org/streams/weather"
GRAPH_IRI = "http://example.org/graphs/weather"
QUERIES = ("weather-averages", "weather-gusts", "weather-coast")

OM_OWL = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
SENSORS = "http://knoesis.wright.edu/ssw/"

# Station -> its usual temperature in degrees Celsius, humidity in per cent, wind in metres a second.
STATIONS = {"BHV": (11.0, 82.0, 8.0), "HEL": (10.0, 86.0, 12.0), "BRO": (3.0, 90.0, 14.0), "HAN": (13.0, 70.0, 4.0),
            "KAS": (14.0, 66.0, 3.0)}
# Property -> its unit, how far it swings, and the least and greatest value it can have.
PROPERTIES = {"AirTemperature": ("celsius", 4.0, -40.0, 45.0), "RelativeHumidity": ("percentage", 12.0, 5.0, 100.0),
              "WindSpeed": ("metersPerSecond", 6.0, 0.0, 60.0)}

_INTERVAL_S = 1.0
_log = logging.getLogger(__name__)


def items(second: int, seed: int = 1) -> list[Item]:
    """What the stations send in the given second of the demo: one item each, without time stamps."""
    return [Item(None, None, tuple(_observations(station, second, seed))) for station in STATIONS]


def value(station: str, name: str, second: int, seed: int = 1) -> float:
    """A reading: the usual value, a slow swing, and noise; one decimal place. Wind has gusts."""
    noise = random.Random(f"{seed}/{station}/{name}/{second}")
    _, swing, least, greatest = PROPERTIES[name]
    usual = STATIONS[station][list(PROPERTIES).index(name)]
    phase = random.Random(f"{seed}/{station}/{name}").random() * math.tau
    reading = usual + swing * 0.6 * math.sin(second / 30 + phase) + swing * 0.2 * noise.uniform(-1, 1)
    if name == "WindSpeed" and noise.random() < 0.08:
        reading += swing * noise.uniform(0.5, 2)
    return round(min(greatest, max(least, reading)), 1)


def background() -> list[Triple]:
    """The classes and stations: the triples of weather-tbox.ttl as tokens."""
    quads = pyoxigraph.parse(path=EXAMPLES / "weather-tbox.ttl", format=pyoxigraph.RdfFormat.TURTLE)
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]


class Demo:
    """The demo on a running engine. `start` returns at once; a thread waits for the engine, loads what is missing, and feeds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the feed; the stream, the graph and the queries stay."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def load(self) -> None:
        """Create the stream, the graph and the queries where they are not there already; what a user changed is left alone."""
        engine = self._engine
        if STREAM not in {stream.name for stream in engine.streams()}:
            engine.put_stream(STREAM, {"iri": STREAM_IRI, "time": "arrival"})
        if GRAPH_IRI not in {graph.iri for graph in engine.graphs()}:
            engine.put_graph(GRAPH_IRI, background())
        known = {query.name for query in engine.queries()}
        for name in QUERIES:
            if name not in known:
                engine.register((EXAMPLES / f"{name}.rq").read_text(encoding="utf-8"), name)

    def _run(self) -> None:
        while not self._engine.ready:
            if self._stopping.wait(0.1):
                return
        try:
            self.load()
        except Exception:  # whatever the engine refuses: the server goes on without the demo
            _log.exception("the demo could not be loaded")
            return
        second = 0
        while not self._stopping.wait(_INTERVAL_S):
            try:
                self._engine.push(STREAM, items(second))
            except EngineError as refused:
                # Busy, stopping, or the user has removed the stream: the next second is another try.
                _log.debug("the demo's push was refused: %s", refused)
            second += 1


def _observations(station: str, second: int, seed: int) -> Iterator[Triple]:
    for name, (unit, *_) in PROPERTIES.items():
        place = f"{name}_{station}_{seed}_{second}"
        observation, result = f"<{SENSORS}Observation_{place}>", f"<{SENSORS}MeasureData_{place}>"
        yield observation, RDF_TYPE, f"<{WEATHER}{name}Observation>"
        yield observation, f"<{OM_OWL}observedProperty>", f"<{WEATHER}_{name}>"
        yield observation, f"<{OM_OWL}procedure>", f"<{SENSORS}System_{station}>"
        yield observation, f"<{OM_OWL}samplingTime>", f"<{SENSORS}Instant_{seed}_{second}>"
        yield observation, f"<{OM_OWL}result>", result
        yield result, RDF_TYPE, f"<{OM_OWL}MeasureData>"
        yield result, f"<{OM_OWL}floatValue>", f'"{value(station, name, second, seed)}"^^<{XSD}decimal>'
        yield result, f"<{OM_OWL}uom>", f"<{WEATHER}{unit}>"
