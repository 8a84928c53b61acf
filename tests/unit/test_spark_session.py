"""The Spark session: what it is started with, its death, and a second life in the same process.

The tests of a life of their own run in a fresh process, for the tests' shared session is the only one that this process may have.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.spark import packages
from engine.spark.jars import fetch_jars, graphframes_jar, missing, use_jars
from engine.spark.launch import Scratch, SparkStartError, remove_abandoned
from engine.spark.session import Session, start_session
from engine.spark.settings import GRAPHFRAMES, SparkSettings, configuration, from_environment
from engine.worker import look
from server import cli
from tests.sparks import INTERPRETED, jvm_pid, needs_graphframes


def test_settings_come_from_the_environment_and_arguments_win() -> None:
    environment = {"THALWEG_MASTER": "spark://host:7077", "THALWEG_CACHE": "/tmp/c", "THALWEG_GRAPHFRAMES": ""}
    settings = from_environment(environment, master=None, memory="1g")
    assert (settings.master, settings.memory, settings.cache) == ("spark://host:7077", "1g", Path("/tmp/c"))
    assert settings.graphframes == ""
    assert from_environment(environment, master="local[4]").master == "local[4]"


def test_the_folder_of_a_cluster_is_a_path_or_not_given() -> None:
    assert from_environment({"THALWEG_CLUSTER_FOLDER": "/nfs/x"}).shared == Path("/nfs/x")
    assert from_environment({"THALWEG_CLUSTER_FOLDER": ""}).shared is None
    assert from_environment({}, shared="~/x").shared == Path("~/x").expanduser()


def test_packages_are_for_the_executors_of_a_cluster(tmp_path: Path) -> None:
    archive = tmp_path / "a b#c,d%20" / "p.tar.gz"
    sent = f"file://{tmp_path}/a%20b%23c%2Cd%2520/p.tar.gz#thalweg-packages"
    for master, expected in (("spark://h:7077", sent), ("local[2]", None)):
        settings = from_environment({"THALWEG_MASTER": master, "THALWEG_EXECUTOR_ENV": str(archive)})
        entries = configuration(settings, tmp_path)
        assert entries.get("spark.archives") == expected
        assert (entries.get("spark.executorEnv.PYTHONPATH") == "thalweg-packages") is (expected is not None)
    assert from_environment({"THALWEG_EXECUTOR_ENV": ""}).executor_env is None


@pytest.mark.parametrize("name", ["none.tar.gz", "there.zip"])
def test_an_archive_that_spark_would_not_unpack_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "there.zip").touch()
    with pytest.raises(SparkStartError, match="no file whose name ends in .tar.gz"):
        start_session(SparkSettings(master="spark://127.0.0.1:1", executor_env=tmp_path / name))


def installed(folder: Path, name: str, files: Sequence[str], record: bool = True) -> None:
    """A distribution with some files."""
    (info := folder / f"{name}-1.0.dist-info").mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file)
    if record:
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in (*files, f"{info.name}/METADATA", "../bin/tool")))


def test_packages_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(there := tmp_path / "site", "some_thing", ["some/__init__.py", "some/tests/x.py", "some/x.pyc", "some/include/x.h"])
    installed(there, "of_system", ["system.py"], record=False)
    (there / "real.py").write_text("linked")
    (there / "some" / "__init__.py").unlink()
    (there / "some" / "__init__.py").symlink_to(there / "real.py")
    monkeypatch.setattr(sys, "path", [str(there), *sys.path])
    monkeypatch.setattr(packages, "requires", lambda name: ["some_thing==1.0", "pyspark==4", "flask==1; extra == 'dev'"])
    target = tmp_path / "p.tar.gz"
    assert packages.pack_packages(target) == ["some_thing 1.0"]
    with tarfile.open(target) as archive:
        assert sorted(archive.getnames()) == ["some/__init__.py", "some_thing-1.0.dist-info/METADATA"]
        assert archive.getmember("some/__init__.py").isreg()
    before = target.read_bytes()
    for lacking, failure in (("no-such-package", PackageNotFoundError), ("of_system", packages.NotPacked)):
        monkeypatch.setattr(packages, "requires", lambda name: ["some_thing==1.0", lacking])
        with pytest.raises(failure):
            packages.pack_packages(target)
    assert target.read_bytes() == before and sorted(path.name for path in tmp_path.iterdir()) == ["p.tar.gz", "site"]


def test_the_command_packs_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(packages, "requires", lambda name: ["pytz==1"])
    assert cli.main(["executor-env", str(tmp_path / "p.tar.gz")]) == 0
    assert "p.tar.gz (" in (told := capsys.readouterr().out) and "pytz " in told and packages.fits() in told
    assert cli.main(["executor-env", str(tmp_path / "none" / "p.tar.gz")]) == 1
    assert "cannot be made" in capsys.readouterr().err
    monkeypatch.setattr(packages, "requires", lambda name: ["no-such-package"])
    assert cli.main(["executor-env", str(tmp_path / "q.tar.gz")]) == 1
    assert "no-such-package is not installed" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["executor-env", str(tmp_path / "p")])


def test_a_worker_looks_for_a_shared_folder_and_for_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_SPREAD_S", 0)
    (seen := tmp_path / "seen").write_text("token")
    host = socket.gethostname()
    assert list(look.look(str(seen), "token", [3])) == [] and (tmp_path / "seen-3").exists()
    assert list(look.look(str(seen), "another", [3])) == list(look.look(str(tmp_path / "none"), "token", [3])) == [(host, None)]
    monkeypatch.setitem(sys.modules, "engine.worker.bundles", None)
    [(found, missing)] = look.look(str(seen), "token", [3])
    assert found == host and missing and "engine.worker.bundles" in missing


def test_a_temporary_folder_is_made_where_a_cluster_sees_it(tmp_path: Path) -> None:
    scratch = Scratch(None, tmp_path / "shared")
    assert scratch.path.parent == tmp_path / "shared"
    scratch.remove()
    assert not [*(tmp_path / "shared").iterdir()]


@pytest.mark.parametrize(("least", "cores"), [(2, 1), (3, 1), (3, 2)])
def test_executors_are_awaited_until_there_are_enough(least: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may come long after the first; from then on no more are awaited than come soon."""
    from engine.spark import cluster

    monkeypatch.setattr(cluster, "_STEADY_S", 0.05)
    monkeypatch.setattr(cluster, "_LOOK_S", 0.02)
    looks = 0

    class Executor:
        def __init__(self, name: str) -> None:
            self.id, self.totalCores = lambda: name, lambda: 0 if name == "driver" else cores

    class Store:
        def executorList(self, active: bool) -> Store:
            nonlocal looks
            looks += 1
            self.there = [Executor("driver"), *(Executor(str(n)) for n in range(1 + min(looks // 10, 2 // cores)))]
            return self

        def size(self) -> int:
            return len(self.there)

        def apply(self, place: int) -> Executor:
            return self.there[place]

    executors, found = cluster._counted(Store(), least)
    assert executors > 1 and found >= least and looks >= 10


@pytest.mark.parametrize(("master", "there", "lacking"), [
    ("local[2]", ["driver"], False), ("spark://h:7077", ["driver", "0"], False), ("spark://h:7077", ["driver"], True)])
def test_a_cluster_may_lack_executors(master: str, there: list[str], lacking: bool) -> None:
    known = SimpleNamespace(size=lambda: len(there), apply=lambda place: SimpleNamespace(id=lambda: there[place]))
    context = SimpleNamespace(statusStore=lambda: SimpleNamespace(executorList=lambda active: known))
    session = SimpleNamespace(settings=SparkSettings(master=master), _context=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)))
    assert Session.lacks_executors(session) is lacking   # type: ignore[arg-type]


@pytest.mark.parametrize(("master", "local"), [
    ("local", True), ("local[2]", True), ("local[*]", True), ("local-cluster[2,1,1024]", False), ("spark://h:7077", False)])
def test_only_a_local_master_is_bound_to_loopback(master: str, local: bool, tmp_path: Path) -> None:
    entries = configuration(SparkSettings(master=master), tmp_path)
    assert (entries.get("spark.driver.bindAddress") == "127.0.0.1") is local


def test_extra_settings_override(tmp_path: Path) -> None:
    assert configuration(SparkSettings(extra={"spark.ui.enabled": "true"}), tmp_path)["spark.ui.enabled"] == "true"


def test_a_jar_cut_short_is_not_used(tmp_path: Path) -> None:
    settings = SparkSettings(cache=tmp_path, graphframes="g:a:1")
    jar = settings.ivy / "jars" / "g_a-1.jar"
    assert graphframes_jar(settings) is None
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"PK\x03\x04 the rest never came")
    assert graphframes_jar(settings) is None
    jar.write_bytes(b"PK\x05\x06" + bytes(18))
    assert graphframes_jar(settings) == jar
    assert use_jars(settings) == {"spark.driver.extraClassPath": str(jar)}


def test_ivy_does_not_look_into_mavens_folder(tmp_path: Path) -> None:
    settings = SparkSettings(cache=tmp_path)
    assert missing(settings) == [settings.graphframes]
    entries = fetch_jars(settings, missing(settings))
    assert entries["spark.jars.packages"] == settings.graphframes
    assert ".m2" not in Path(entries["spark.jars.ivySettings"]).read_text(encoding="utf-8")


def test_own_repositories_are_left_alone(tmp_path: Path) -> None:
    settings = SparkSettings(cache=tmp_path, extra={"spark.jars.ivySettings": "/mirror.xml"})
    assert "spark.jars.ivySettings" not in fetch_jars(settings, missing(settings))


@pytest.mark.parametrize(("setting", "value"), [
    ("spark.sql.session.timeZone", "UTC"), ("spark.sql.variable.substitute", "false"), ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.adaptive.enabled", "false"), ("spark.sql.caseSensitive", "true")])
def test_settings_that_decide_answers(spark_session: Session, setting: str, value: str) -> None:
    assert spark_session.spark.conf.get(setting) == value


def test_literals_with_dollars_are_not_substituted(spark_session: Session) -> None:
    assert spark_session.spark.sql("select '${env:HOME}' v").toArrow().column("v").to_pylist() == ["${env:HOME}"]


def test_workers_run_this_python_with_the_engine_loaded(spark_session: Session) -> None:
    import pyarrow as pa

    def look(batches: object) -> object:
        import sys
        loaded = "engine.functions" in sys.modules and "duckdb" in sys.modules
        yield pa.record_batch([pa.array([sys.executable]), pa.array([loaded])], names=["python", "loaded"])

    frame = spark_session.spark.range(0, 1, 1, 1)
    rows = frame.mapInArrow(look, "python string, loaded boolean").toArrow().to_pylist()  # type: ignore[arg-type]
    assert rows == [{"python": sys.executable, "loaded": True}]


def test_the_jvm_is_in_a_process_session_of_its_own(spark_session: Session) -> None:
    """A signal to this process's group (Ctrl-C, systemd) leaves it alone."""
    assert os.getsid(jvm_pid(spark_session)) != os.getsid(0)
    assert spark_session.alive and spark_session.responds(30)


def test_graphframes_answer(spark_session: Session) -> None:
    needs_graphframes(spark_session)
    from graphframes import GraphFrame

    spark = spark_session.spark
    nodes = spark.createDataFrame([(0,), (1,), (2,)], "id long")
    edges = spark.createDataFrame([(0, 1)], "src long, dst long")
    components = GraphFrame(nodes, edges).connectedComponents(algorithm="graphx").toArrow().to_pylist()
    assert len({row["component"] for row in components}) == 2


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock tells whose process still lives; a folder without one is somebody else's business."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held, foreign = Scratch(None), tmp_path / "thalweg-spark-foreign"
    foreign.mkdir()
    kill_me = ("import os; from engine.spark.launch import Scratch; made = Scratch(None); print(made.path, flush=True); "
               "os.kill(os.getpid(), 9)")
    killed = subprocess.run([sys.executable, "-c", kill_me], capture_output=True, text=True, cwd=Path(__file__).parents[2],
                            timeout=60, check=False, env=os.environ | {"TMPDIR": str(tmp_path)})
    abandoned = Path(killed.stdout.strip())
    assert abandoned.is_dir() and abandoned.parent == tmp_path
    remove_abandoned(tmp_path)
    assert not abandoned.exists() and held.path.is_dir() and foreign.is_dir()
    held.remove()
    assert not held.path.exists()


def run_alone(code: str, tmp_path: Path, within_s: int = 250) -> str:
    """Run `code` in a new Python; returns its standard output."""
    done = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, timeout=within_s, check=False, cwd=Path(__file__).parents[2],
                          env=os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_starts_without_graphframes_is_killed_noticed_and_started_again(tmp_path: Path) -> None:
    """No such artifact stands for no network: Ivy fails either way, and the JVM with it. The twins answer; log and /info say so. Then kill
    -9 of the JVM: the callback comes, `stop` returns, a second session runs in the same process, nothing is left over."""
    (tmp_path / "empty.xml").write_text('<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
                                        f'<artifact pattern="{tmp_path}/none/[artifact]-[revision].[ext]"/></filesystem>'
                                        "</resolvers></ivysettings>", encoding="utf-8")
    output = run_alone(f"""
        import logging, os, signal, sys, threading
        from engine.runtime.backend import Backend
        from engine.runtime.service import Engine
        from engine.runtime.settings import Settings
        from engine.spark import session as sessions
        from engine.spark.graphs import Graphs
        from grammar import parse
        from server.app import create_app
        logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
        # Py4J says, by the root logger too, which calls the JVM's death meets; that is chance.
        logging.getLogger().handlers[0].addFilter(logging.Filter("engine"))
        settings = sessions.from_environment(memory="512m", cache="{tmp_path}/cache",
                                             extra={{"spark.jars.ivySettings": "{tmp_path}/empty.xml"}} | {INTERPRETED})
        first = sessions.start_session(settings, print)
        print("lacking:", sessions._lacking(first.spark, settings))
        edges = first.spark.createDataFrame([("a", "b"), ("b", "c"), ("d", "d")], "x string, y string")
        pairs, chosen = Graphs(first, "graphframes").reach(edges)
        print(chosen.way, sorted(row.x + row.y for row in pairs.collect()))
        engine = Engine(Settings(), parse, backend=Backend(Settings(), first))
        told = create_app(engine).test_client().get("/info", headers={{"Host": "localhost"}}).get_json()
        print("/info:", told["graphframes"], told["graphframesReason"])

        switched_off = sessions.from_environment(memory="512m", graphframes="")
        try:
            sessions.start_session(switched_off)
        except sessions.SparkStartError as refused:
            print("second refused:", refused)
        died = threading.Event()
        first.on_death(died.set)
        os.kill(first._process.pid, signal.SIGKILL)
        print("noticed", died.wait(20), first.alive, first.responds(5))
        first.stop()
        first.stop()
        second = sessions.start_session(switched_off)
        second.on_death(lambda: print("never"))
        print(second.spark.range(4).count(), second.graphframes, second.graphframes_reason)
        os.kill(second._process.pid, signal.SIGSTOP)
        print("halted responds", second.responds(1))
        os.kill(second._process.pid, signal.SIGCONT)
        second.stop()
        print(second.work.exists(), second.alive)
        """, tmp_path)
    lines, name = output.splitlines(), GRAPHFRAMES
    reason = f"{name} could not be fetched"
    assert lines[1].startswith("fetching once: org.apache.sedona:")
    assert f"WARNING GraphFrames not loaded ({reason}): their plain Spark twins run instead" in lines
    assert lines[-10:] == [
        f"lacking: {name} has no GraphFrames", f"WARNING reachability by the twin in Spark SQL: GraphFrames not loaded ({reason})",
        "sql ['ab', 'ac', 'bc', 'dd']", f"/info: False {reason}",
        "second refused: a Spark session is running in this process already: stop it first", "noticed True False False",
        "WARNING GraphFrames not loaded (switched off): their plain Spark twins run instead", "4 False switched off",
        "halted responds False", "False False"]
    assert not list(tmp_path.glob("thalweg-spark-*"))


def test_a_failed_start_says_what_the_jvm_said(tmp_path: Path) -> None:
    output = run_alone("""
        from engine.spark.session import SparkStartError, from_environment, start_session
        try:
            start_session(from_environment(memory="16k", graphframes=""))
        except SparkStartError as failure:
            print("told:", "heap" in str(failure).lower() or "memory" in str(failure).lower())
        """, tmp_path)
    assert output.splitlines() == ["told: True"]


def test_the_engine_can_be_imported_from_the_zip_that_a_cluster_gets(tmp_path: Path) -> None:
    from engine.spark.launch import zip_engine

    archive = zip_engine(tmp_path / "engine.zip")
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import engine.facts; print(engine.facts.__file__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60)
    assert found.stdout.startswith(str(archive))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_cluster_of_executor_processes_answers(tmp_path: Path) -> None:
    """Executors in JVMs of their own, in another folder: the engine reaches their Python workers, GraphFrames their class path."""
    output = run_alone("""
        import pyarrow as pa
        from engine.spark.session import from_environment, start_session
        session = start_session(from_environment(master="local-cluster[2,1,1024]", memory="512m"))
        def look(batches):
            import engine.functions
            yield pa.record_batch([pa.array(["engine.zip" in engine.functions.__file__])], names=["sent"])
        print(session.spark.range(0, 2, 1, 2).mapInArrow(look, "sent boolean").toArrow().column(0).to_pylist())
        if session.graphframes:
            from graphframes import GraphFrame
            nodes = session.spark.createDataFrame([(0,), (1,), (2,)], "id long")
            edges = session.spark.createDataFrame([(0, 1)], "src long, dst long")
            print(GraphFrame(nodes, edges).connectedComponents(algorithm="graphx").count())
        session.stop()
        """, tmp_path, within_s=350)
    assert output.splitlines()[:1] == ["[True, True]"]
