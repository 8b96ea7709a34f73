"""What the manual shows must run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

MANUAL = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(), re.MULTILINE | re.DOTALL)
NAMED = {match[1]: snippet for snippet in SNIPPETS if (match := re.match(r"# (\w+\.py)\n", snippet))}
ALONE = [snippet for snippet in SNIPPETS if not re.match(r"# \w+\.py\n", snippet)]


def start(path: pathlib.Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(path), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


@pytest.mark.parametrize("snippet", ALONE, ids=[str(number) for number in range(len(ALONE))])
def test_a_snippet(snippet: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "snippet.py"
    path.write_text(snippet)
    assert finish(start(path))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (("receiver.py",), ("sender.py",), "says b'hello'"),
        (("sums.py", "serve"), ("sums.py",), "1.5\n3.0\n4.5\n"),
        (("worker.py", "work"), ("worker.py",), "'sum': "),
    ],
)
def test_two_programs(one: tuple[str, ...], other: tuple[str, ...], said: str, tmp_path: pathlib.Path) -> None:
    for name in {one[0], other[0]}:
        (tmp_path / name).write_text(NAMED[name])
    processes = [start(tmp_path / name, *arguments) for name, *arguments in (one, other)]
    assert said in "".join(finish(process) for process in processes)


def test_all_are_run() -> None:
    assert len(NAMED) == 4 and len(ALONE) == 18
