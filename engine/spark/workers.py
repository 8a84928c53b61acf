"""How work reaches the Python workers of Spark: as the tasks of a job, or over the connection of a task that does not end, in whose worker
tables stay (docs/decisions.md, "State and incremental answers").
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import pickle
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Literal, TypeVar

from engine.spark.cluster import executors_in
from engine.worker.bundles import QueryFailed, Result, run_bundles
from engine.worker.database import THREADS_VARIABLE, database, interrupt
from engine.worker.guard import GRACE_S, end_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Made = TypeVar("Made")
RESULT_BYTES = 512 << 20    # of the answers to a bundle, as spark.driver.maxResultSize bounds those of a job
START_S = 60.0              # until the worker of a resident task has a connection
_LOOK_S = 0.1
_SECRET_BYTES = 32      # as the digest of a place has
_PLACINGS = 10          # so often another executor is tried
_HELLO_S = 5.0              # until one that connects has told the secret
_TOLD_S = 3.0               # until Spark has heard of an executor's end, of which a connection tells at once
_BEFORE_S = 10.0            # the end of an executor that so long ago ended no bundle
_LOG = logging.getLogger(__name__)
_ENVIRONMENT = threading.Lock()


class WorkerDied(RuntimeError):
    """A worker ended while it had a bundle."""


class ExecutorLost(RuntimeError):
    """An executor ended while its worker had a bundle."""


class NoWorker(RuntimeError):
    """No executor has had a place for a worker for `START_S`."""


class TooLarge(RuntimeError):
    """The answers to a bundle have more than `RESULT_BYTES`."""


def run_in_pool(spark: SparkSession, work: Callable[[Iterable[bytes]], Iterator[Made]], bundles: Sequence[bytes],
                threads: int | None) -> list[Made]:
    """What `work` makes of the bundles in a job, each in a worker that has so many threads (None: of those that have one). Spark keeps a
    pool of workers, and a process that they are forked from, for each environment."""
    context = spark.sparkContext
    made = context.parallelize(bundles, len(bundles)).mapPartitions(work)
    with _ENVIRONMENT:
        own = {} if threads is None else {THREADS_VARIABLE: str(threads)}
        context.environment.update(own)
        made._jrdd      # takes the environment as it is now
        for name in own:
            del context.environment[name]
    return list(made.collect())


class ResidentTask:
    """The task whose worker has the tables that stay. It begins with the first bundle, and again after its worker has died; it takes one of
    Spark's slots. From any thread; bundles take turns."""

    def __init__(self, spark: SparkSession, threads: int, others: Sequence[ResidentTask] = ()) -> None:
        """`others`, among which it may be itself, should be in other executors."""
        self._spark, self._threads, self._others = spark, threads, others
        self._place = b""
        self._turn, self._sending = threading.Lock(), threading.Lock()
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None
        self._job: Future[None] | None = None

    def start(self) -> None:
        """Have a worker, so that the first bundle need not wait for one."""
        with self._turn:
            self._connected()

    def run(self, number: int, bundle: bytes) -> list[Result]:
        """What the tasks of a bundle give; it is interrupted by its number. Raises WorkerDied, ExecutorLost, TooLarge, or why there is no
        worker: NoWorker, or how the job of the task failed."""
        with self._turn:
            connection = self._connected()
            results, size, began = list[Result | Exception](), 0, time.time()
            try:
                self._send(connection, number, bundle)
                while answer := connection.recv_bytes():
                    size += len(answer)
                    if size <= RESULT_BYTES:
                        results.append(pickle.loads(answer))    # of our own making
            except BaseException as failure:    # else what is left of the answers would be taken for those to the next bundle
                self.close()
                if isinstance(failure, (EOFError, OSError)):
                    if self._others and lost_executors(self._spark, began - _BEFORE_S, _TOLD_S):
                        raise ExecutorLost("the executor of the resident task ended") from failure
                    raise WorkerDied("the worker of the resident task ended") from failure
                raise
        if size > RESULT_BYTES:
            raise TooLarge(f"the answers have {size} bytes")
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [result for result in results if not isinstance(result, Exception)]

    def interrupt(self, number: int) -> None:
        """End the statement that runs for a bundle; between two statements nothing ends."""
        with suppress(OSError):     # it died
            if (connection := self._connection) is not None:
                self._send(connection, number, b"")

    def close(self) -> None:
        """End the task, and what its worker is at."""
        gone, self._socket, self._connection, self._place = self._socket, None, None, b""
        if gone is not None:
            with suppress(OSError), gone:     # the other end may have closed it
                gone.shutdown(socket.SHUT_RDWR)     # holds for the copy that somebody may wait at, too

    def _send(self, connection: Connection, number: int, bundle: bytes) -> None:
        with self._sending:
            connection.send_bytes(number.to_bytes(8))
            connection.send_bytes(bundle)

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.poll():    # it has nothing to say but that it has ended
            self.close()
        if self._connection is None:
            self._socket = self._begin()
            self._connection = Connection(os.dup(self._socket.fileno()))
        return self._connection

    def _begin(self) -> socket.socket:
        """Start the task; the connection to its worker. Spark chooses an executor at random: where another such task is, it is tried again
        some times."""
        for _ in range(_PLACINGS if self._others else 0):
            found, self._place = self._started()
            if all(self._place != other._place for other in self._others if other is not self):
                return found
            found.close()
            time.sleep(_LOOK_S)     # until Spark has the slot again, which it may give another
        found, self._place = self._started()
        return found

    def _started(self) -> tuple[socket.socket, bytes]:
        """A task that was started: the connection to its worker, and its place."""
        conf, secret = self._spark.sparkContext.getConf(), secrets.token_bytes(_SECRET_BYTES)
        host = conf.get("spark.driver.host", "127.0.0.1")
        assert host is not None
        with socket.create_server((conf.get("spark.driver.bindAddress", host), 0)) as listening:
            self._job = job = Future[None]()
            work = partial(_serve, (host, listening.getsockname()[1]), secret)
            threading.Thread(target=self._run_job, args=(job, work), name="resident-task", daemon=True).start()
            listening.settimeout(_LOOK_S)
            until = time.monotonic() + START_S
            while not job.done() and time.monotonic() < until:
                with suppress(TimeoutError):
                    connection = listening.accept()[0]
                    if _says(connection, secret):
                        return connection, connection.recv(_SECRET_BYTES, socket.MSG_WAITALL)
                    connection.close()
        if job.done():
            job.result()
        raise NoWorker(f"no worker came within {START_S:g} s")

    def _run_job(self, job: Future[None], work: Callable[[Iterable[bytes]], Iterator[bytes]]) -> None:
        try:
            run_in_pool(self._spark, work, [b""], self._threads)
            job.set_result(None)
        except Exception as failure:    # Spark's and Py4J's errors have no common base; whoever waits for a worker is told
            _LOG.debug("the resident task ended: %s", failure)
            job.set_exception(failure)
        if self._job is job:    # also where its executor is lost, of which a connection may not tell
            self.close()


def lost_executors(spark: SparkSession, since_s: float, within_s: float) -> Literal["", "some", "all"]:
    """Which executors are gone: "some" have ended since then (seconds since 1970), "all": none is there now; "" where neither holds, or
    Spark itself has ended. Waits for so long until Spark has heard of an end."""
    until = time.monotonic() + within_s
    with suppress(Exception):       # a dead JVM raises any of Py4J's and the socket's errors
        store = spark.sparkContext._jsc.sc().statusStore()
        while True:
            executors = executors_in(store, active_only=False)
            if not any(each.isActive() for each in executors):
                return "all"
            removed = [each.removeTime() for each in executors]
            if any(each.isDefined() and each.get().getTime() / 1000 >= since_s for each in removed):
                return "some"
            if time.monotonic() > until:
                break
            time.sleep(_LOOK_S)
    return ""


def run_side_by_side(residents: Sequence[ResidentTask], number: int, bundles: Mapping[int, Callable[[], bytes]]) -> list[Result]:
    """What the tasks of bundles give, each made and run for itself in the worker of its shard. All are waited for; raises what the first
    one raised."""
    def run(shard: int, bundle: Callable[[], bytes]) -> list[Result]:
        return residents[shard].run(number, bundle())

    if len(bundles) == 1:
        return [result for made in bundles.items() for result in run(*made)]
    with ThreadPoolExecutor(len(bundles), "shard") as pool:
        waiting = [pool.submit(run, *made) for made in bundles.items()]
    return [result for one in waiting for result in one.result()]


def _says(connection: socket.socket, secret: bytes) -> bool:
    """Whether the other end tells the secret, in time. The connection waits for nothing from then on."""
    connection.settimeout(_HELLO_S)
    with suppress(OSError):
        told = connection.recv(len(secret), socket.MSG_WAITALL)
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return hmac.compare_digest(told, secret)
    return False


def _serve(address: tuple[str, int], secret: bytes, _: Iterable[bytes]) -> Iterator[bytes]:
    """Runs in the worker: answers bundles until the driver closes the connection."""
    with socket.create_connection(address, START_S) as own:
        own.settimeout(None)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own.sendall(secret + _place())
        with Connection(os.dup(own.fileno())) as connection:
            serving = _Serving(connection)
            threading.Thread(target=serving.listen, name="bundles", daemon=True).start()
            serving.answer()
    yield from ()


def _place() -> bytes:
    """What tells the executor of this worker from others: its machine, and the folder in which it runs."""
    return hashlib.sha256(f"{socket.gethostname()} {os.getcwd()}".encode()).digest()


class _Serving:
    """The worker's end: one thread hears what comes, the other, which signals reach, does the work."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bundles: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running: int | None = None
        self._done = threading.Event()

    def listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                number, bundle = int.from_bytes(self._connection.recv_bytes()), self._connection.recv_bytes()
                if bundle:
                    self._bundles.put((number, bundle))
                else:
                    self._interrupt(number)
        self._bundles.put(None)
        until = time.monotonic() + GRACE_S
        while not self._done.wait(_LOOK_S):
            self._interrupt(self._running)
            if time.monotonic() > until:
                os._exit(1)     # nobody waits for what no interrupt ends

    def _interrupt(self, number: int | None) -> None:
        with self._lock:
            if number is not None and number == self._running:
                end_all()
                interrupt(database())

    def answer(self) -> None:
        try:
            while (given := self._bundles.get()) is not None:
                number, bundle = given
                self._set_running(number)
                for result in _results(bundle):
                    self._connection.send_bytes(pickle.dumps(result))
                self._set_running(None)
                self._connection.send_bytes(b"")
        except OSError as failure:      # nobody waits for an answer
            _LOG.debug("the connection to the driver ended: %s", failure)
        finally:
            self._done.set()

    def _set_running(self, number: int | None) -> None:
        with self._lock:    # an interrupt is for one bundle and no other
            self._running = number


def _results(bundle: bytes) -> Iterator[Result | Exception]:
    """What the tasks of a bundle give, in the end why it failed as a whole."""
    try:
        yield from run_bundles([bundle])
    except Exception as failure:    # told as a job's failure is
        yield QueryFailed(f"{type(failure).__name__}: {failure}")
