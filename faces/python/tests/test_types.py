"""The stubs say what the module has, and the package keeps to them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import hamlyn

PACKAGE = pathlib.Path(hamlyn.__file__).parent


def run(*arguments: str) -> None:
    environment = dict(os.environ)
    # What is installed mypy finds by itself.
    if "site-packages" not in PACKAGE.parts:
        environment["MYPYPATH"] = str(PACKAGE.parent)
    done = subprocess.run([sys.executable, "-m", *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_match_the_module(tmp_path: pathlib.Path) -> None:
    allowed = tmp_path / "allowed"
    # Before 3.12 Python code cannot see the buffer protocol of an object.
    allowed.write_text("" if sys.version_info >= (3, 12) else r"hamlyn\._hamlyn\.\w+\.__(release_)?buffer__" + "\n")
    run("mypy.stubtest", "hamlyn._hamlyn", "--concise", "--allowlist", str(allowed), "--ignore-unused-allowlist")


def test_the_package_is_typed(tmp_path: pathlib.Path) -> None:
    run("mypy", "--strict", "--ignore-missing-imports", "--no-warn-unused-ignores", "--cache-dir", str(tmp_path), "-p", "hamlyn")


def test_everything_is_documented() -> None:
    for name in hamlyn.__all__:
        thing = getattr(hamlyn, name)
        assert thing.__doc__, name
        for member in getattr(thing, "__dict__", {}) if isinstance(thing, type) else ():
            if not member.startswith("_"):
                assert getattr(thing, member).__doc__, f"{name}.{member}"
