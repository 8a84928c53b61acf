"""Finding Java: folders with fake installations; no Java is started but by the one test that asks a script for its version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.spark import java
from engine.spark.java import Java, JavaNotFound, ensure_java, find_java, major_version, read_java


def make_java(home: Path, version: str, *, release: bool = True) -> Path:
    """A folder that looks like a Java installation: a `release` file, or only a program that answers ``-version``."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


def find(tmp_path: Path, **environment: str) -> Java:
    return find_java(environment, root=tmp_path)


@pytest.mark.parametrize(("version", "major"), [
    ("17.0.15", 17), ("21", 21), ("1.8.0_412", 8), ("25-ea", 25), ("11.0.2+9", 11), ("17.0.1+12-LTS", 17), ("", None),
    ("no", None)])
def test_major_version(version: str, major: int | None) -> None:
    assert major_version(version) == major


def test_java_home_wins_if_it_fits(tmp_path: Path) -> None:
    mine = make_java(tmp_path / "mine", "21.0.2")
    make_java(tmp_path / "usr/lib/jvm/java-17", "17.0.1")
    found = find(tmp_path, JAVA_HOME=str(mine))
    assert (found.home, found.major) == (mine, 21)


@pytest.mark.parametrize("version", ["25.0.1", "24", "11.0.2", "1.8.0_412", "18.0.1", "22"])
def test_another_version_never_wins(tmp_path: Path, version: str) -> None:
    """Neither as JAVA_HOME nor on the PATH, when a fitting one lies in a usual folder."""
    other = make_java(tmp_path / "other", version)
    fitting = make_java(tmp_path / "usr/lib/jvm/temurin-17", "17.0.9")
    assert find(tmp_path, JAVA_HOME=str(other), PATH=str(other / "bin")).home == fitting


def test_the_second_java_on_the_path_is_found(tmp_path: Path) -> None:
    other, fitting = make_java(tmp_path / "a", "25"), make_java(tmp_path / "b", "17.0.2")
    assert find(tmp_path, PATH=os.pathsep.join([str(other / "bin"), "", str(fitting / "bin")])).home == fitting


def test_links_on_the_path_are_followed(tmp_path: Path) -> None:
    """Debian: /usr/bin/java -> /etc/alternatives/java -> the installation."""
    home = make_java(tmp_path / "usr/lib/jvm/java-17-openjdk", "17.0.2")
    alternatives, programs = tmp_path / "etc", tmp_path / "bin"
    alternatives.mkdir()
    programs.mkdir()
    (alternatives / "java").symlink_to(home / "bin" / "java")
    (programs / "java").symlink_to(alternatives / "java")
    assert find(tmp_path, PATH=str(programs)).home == home


@pytest.mark.parametrize("place", [
    "usr/lib/jvm/x", "opt/jdk-17", "opt/java/openjdk", "usr/java/jdk-17",
    "Library/Java/JavaVirtualMachines/temurin-17.jdk/Contents/Home",
    "opt/homebrew/opt/openjdk@17/libexec/openjdk.jdk/Contents/Home"])
def test_usual_folders(tmp_path: Path, place: str) -> None:
    home = make_java(tmp_path / place, "17.0.4")
    assert find(tmp_path).home == home


def test_sdkman(tmp_path: Path) -> None:
    home = make_java(tmp_path / "me/.sdkman/candidates/java/21.0.2-tem", "21.0.2")
    assert find(tmp_path, HOME=str(tmp_path / "me")).home == home


def test_among_folders_17_before_21(tmp_path: Path) -> None:
    make_java(tmp_path / "usr/lib/jvm/a-21", "21.0.1")
    assert find_after(tmp_path, "usr/lib/jvm/z-17", "17.0.1").major == 17


def find_after(tmp_path: Path, place: str, version: str) -> Java:
    make_java(tmp_path / place, version)
    return find(tmp_path)


def test_without_release_file_the_program_is_asked(tmp_path: Path) -> None:
    home = make_java(tmp_path / "opt/jre", "17.0.7", release=False)
    assert find(tmp_path) == Java(home, 17, "17.0.7")


def test_a_program_that_fails_is_no_java(tmp_path: Path) -> None:
    """macOS without Java: /usr/bin/java exists and tells where to download one."""
    home = make_java(tmp_path / "usr", "17", release=False)
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'Unable to locate a Java Runtime.' >&2; exit 1\n", encoding="utf-8")
    assert read_java(home) is None


def test_error_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    home = make_java(tmp_path / "opt/jdk-25", "25.0.1")
    with pytest.raises(JavaNotFound) as failure:
        find(tmp_path, PATH="")
    assert "apt-get install openjdk-17-jre-headless" in str(failure.value)
    assert f"Java 25.0.1 in {home}" in str(failure.value)


def test_installs_debians_package_when_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(java, "FOLDERS", (str(tmp_path / "jvm" / "*").lstrip("/"),))
    monkeypatch.setattr(java, "_may_install", lambda: True)
    monkeypatch.setattr(java, "_apt_install", lambda say: make_java(tmp_path / "jvm/java-17", "17.0.15"))
    assert ensure_java(said.append, {"PATH": ""}).major == 17
    assert "installing openjdk-17-jre-headless" in said[0]


def test_does_not_install_when_it_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "FOLDERS", (str(tmp_path / "*").lstrip("/"),))
    monkeypatch.setattr(java, "_may_install", lambda: False)
    with pytest.raises(JavaNotFound, match="none was found"):
        ensure_java(print, {"PATH": ""})


def test_a_failed_installation_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(say: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(java, "FOLDERS", (str(tmp_path / "*").lstrip("/"),))
    monkeypatch.setattr(java, "_may_install", lambda: True)
    monkeypatch.setattr(java, "_apt_install", refuse)
    with pytest.raises(JavaNotFound, match="apt-get was tried and failed: no network"):
        ensure_java(print, {"PATH": ""})
