"""Programs in C and in Python talk to each other: those of both manuals."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest
from test_docs import NAMED, finish, start

ROOT = pathlib.Path(__file__).parents[3]
# Where the tests of the C library leave it.
LIBRARY = ROOT / "target" / "debug" / "deps"
PROGRAMS_IN_C = dict(
    re.findall(r"^```c\n/\* ((?:receiver|sender)\.c) \*/\n(.*?)^```", (ROOT / "docs" / "c.md").read_text(), re.MULTILINE | re.DOTALL)
)


@pytest.fixture
def compiled(tmp_path: pathlib.Path):
    compiler = shutil.which("cc")
    if compiler is None or not (LIBRARY / "libhamlyn_c.so").exists():
        pytest.skip("no C compiler, or no C library: `cargo test -p hamlyn-c --no-run` builds it")

    def compile(name: str) -> list[str]:
        source, program = tmp_path / name, tmp_path / name.removesuffix(".c")
        source.write_text(PROGRAMS_IN_C[name])
        include = ROOT / "faces" / "c" / "include"
        options = ["-L", str(LIBRARY), f"-Wl,-rpath,{LIBRARY}", "-lhamlyn_c", "-o", str(program)]
        subprocess.run([compiler, "-I", str(include), str(source), *options], check=True)
        return [str(program)]

    return compile


@pytest.mark.parametrize("receiver_is_c", [True, False])
def test_c_and_python(receiver_is_c: bool, compiled, tmp_path: pathlib.Path) -> None:
    script = "sender.py" if receiver_is_c else "receiver.py"
    (tmp_path / script).write_text(NAMED[script])
    program = compiled("receiver.c" if receiver_is_c else "sender.c")
    in_c = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    in_python = start(tmp_path / script)
    said = finish(in_c) + finish(in_python)
    assert ("says: hello" if receiver_is_c else "says b'hello'") in said
