"""The examples of `examples/python`: with each other, and with those in C, C++ and Rust, which do the same."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys
from typing import Callable, Optional

import pytest

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
# Where the tests of the other languages leave the C library, and the examples in Rust.
LIBRARY = ROOT / "target" / "debug" / "deps"
IN_RUST = ROOT / "target" / "debug"
COMPILERS = {"c": ("cc", "-std=gnu11", "c"), "cpp": ("c++", "-std=c++20", "cpp")}
SECONDS = 120

Program = list[str]


def command_of(name: str, language: str, folder: pathlib.Path) -> Program:
    """The command that runs an example; skips the test if this machine lacks something."""
    if language == "python":
        return [sys.executable, str(EXAMPLES / "python" / f"{name}.py")]
    if language == "rust":
        program = IN_RUST / name
        if not program.exists():
            pytest.skip(f"no {program}: `cargo test -p hamlyn-examples --no-run` builds it")
        return [str(program)]
    compiler, standard, extension = COMPILERS[language]
    if shutil.which(compiler) is None or not (LIBRARY / "libhamlyn_c.so").exists():
        pytest.skip(f"no {compiler}, or no C library: `cargo test -p hamlyn-c --no-run` builds it")
    program = folder / f"{name}-{language}"
    include = ROOT / "faces" / "c" / "include"
    source = EXAMPLES / language / f"{name}.{extension}"
    options = ["-L", str(LIBRARY), f"-Wl,-rpath,{LIBRARY}", "-lhamlyn_c", "-o", str(program)]
    subprocess.run([compiler, standard, "-I", str(include), str(source), *options], check=True)
    return [str(program)]


class Running:
    """Programs that are killed if their test fails."""

    def __init__(self) -> None:
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, program: Program, *arguments: str, reads: Optional[bytes] = None) -> subprocess.Popen[bytes]:
        command = [*program, *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE if reads else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.all.append(process)
        return process

    def run(self, program: Program, *arguments: str, reads: Optional[bytes] = None) -> str:
        return finish(self.start(program, *arguments, reads=reads), reads)


def finish(process: subprocess.Popen[bytes], reads: Optional[bytes] = None) -> str:
    output, errors = process.communicate(reads, timeout=SECONDS)
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.fixture
def running():
    programs = Running()
    yield programs
    for process in programs.all:
        if process.poll() is None:
            process.kill()
            process.wait()


def revocation(running: Running, server: Program, client: Program, folder: pathlib.Path) -> None:
    serving = running.start(server, "serve", "2")
    assert running.run(client, "ask", "public") == "come in\n"
    # Both calls fail: the one that it is dismissed for, and one that others may make.
    dismissed = running.run(client, "ask", "secret", "public").splitlines()
    assert len(dismissed) == 2 and all("door/service" in line for line in dismissed), dismissed
    assert running.run(client, "ask", "public") == "come in\n"
    assert finish(serving).count("is dismissed") == 1


def records(running: Running, collector: Program, sender: Program, folder: pathlib.Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(1000)) + "\n" + "long " * 50_000 + "\nlast\n"
    collecting = running.start(collector, "collect")
    running.run(sender, "send", reads=lines.encode())
    assert finish(collecting) == lines


def digests(running: Running, owner: Program, worker: Program, folder: pathlib.Path) -> None:
    data = bytes(at * 2_654_435_761 >> 24 & 0xFF for at in range(300_001))
    file = folder / "a file"
    file.write_bytes(data)
    parts = [hashlib.sha256(data[begin : begin + 100_001]).digest() for begin in range(0, len(data), 100_001)]
    working = [running.start(worker, "work") for _ in parts]
    assert running.run(owner, "gather", str(file), "3") == hashlib.sha256(b"".join(parts)).hexdigest() + "\n"
    for process in working:
        finish(process)


def pairs(running: Running, owner: Program, writer: Program, folder: pathlib.Path) -> None:
    owning = running.start(owner, "own", "5")
    full = "a key of 24 bytes ......=a value of just 40 bytes ..............."
    writing = [running.start(writer, "put", "tea=1", "tea=2", "milk=none"), running.start(writer, "put", "salt=7", full)]
    for process in writing:
        finish(process)
    assert finish(owning) == f"{full}\nmilk=none\nsalt=7\ntea=2\n"


def events(running: Running, listener: Program, speaker: Program, folder: pathlib.Path) -> None:
    listening = running.start(listener, "listen", "3")
    running.run(speaker, "say", "over here")
    running.run(speaker, "count", "7")
    running.run(speaker, "count", "8")
    assert sorted(finish(listening).splitlines()) == ["number 7", "number 8", "over here"]


# Each example, what it must do, and the languages besides Python that have it.
SCENES: dict[str, tuple[Callable[[Running, Program, Program, pathlib.Path], None], tuple[str, ...]]] = {
    "bouncer": (revocation, ("rust", "c", "cpp")),
    "log": (records, ("rust", "c", "cpp")),
    "digest": (digests, ("rust", "c")),
    "table": (pairs, ("rust", "c", "cpp")),
    "tasks": (events, ("rust", "c", "cpp")),
}
PAIRS = [
    (name, *languages)
    for name, (_, others) in SCENES.items()
    for languages in [("python", "python"), *((other, "python") for other in others), *(("python", other) for other in others)]
]


@pytest.mark.parametrize(("name", "server", "client"), PAIRS)
def test_an_example(name: str, server: str, client: str, running: Running, tmp_path: pathlib.Path) -> None:
    programs = {language: command_of(name, language, tmp_path) for language in {server, client}}
    SCENES[name][0](running, programs[server], programs[client], tmp_path)


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_the_halo_exchange(processes: int, running: Running) -> None:
    program = command_of("halo", "python", EXAMPLES)
    assert running.run(program, str(processes)) == f"{processes} processes agree with one\n"


@pytest.mark.parametrize("path", sorted((EXAMPLES / "python").glob("*.py")), ids=lambda path: path.name)
def test_each_says_how_it_is_used(path: pathlib.Path) -> None:
    ended = subprocess.run([sys.executable, str(path), "nonsense"], capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode != 0 and ended.stderr.startswith("usage: "), ended.stderr


def test_all_are_run() -> None:
    assert {path.stem for path in (EXAMPLES / "python").glob("*.py")} == {*SCENES, "halo"}
