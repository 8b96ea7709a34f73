"""What the tests share: a namespace for each, and peers that are processes of their own."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
from typing import Any, Callable, Iterator

import pytest

# A hang is a failure; nothing waits that long when all is well.
JOIN_SECONDS = 120

_numbers = itertools.count()
# Peers are forks of a server without managers, which has imported what takes longest: for each to do so is a sixth of what the
# tests take of a processor.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["hamlyn", "numpy", "pytest"])


def _peer(environment: dict[str, str], target: Callable[..., None], *arguments: Any) -> None:
    """Calls it with that environment, as that of the server is of before."""
    os.environ.clear()
    os.environ.update(environment)
    target(*arguments)


def _process(target: Callable[..., None], *arguments: Any) -> Any:
    """A peer that is not started yet."""
    return _context.Process(target=_peer, args=(dict(os.environ), target, *arguments))


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> str:
    """Managers of one test do not see those of another."""
    name = f"py{os.getpid()}x{next(_numbers)}"
    monkeypatch.setenv("HAMLYN_NAMESPACE", name)
    return name


@contextlib.contextmanager
def running(target: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """A peer, in a process of its own, which must end well."""
    process = _process(target, *arguments)
    process.start()
    try:
        yield process
        process.join(JOIN_SECONDS)
        assert process.exitcode == 0, f"{target.__name__} ended with {process.exitcode}"
    finally:
        if process.is_alive():
            process.kill()
            process.join()


@contextlib.contextmanager
def doomed(target: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """A peer that is to be killed."""
    process = _process(target, *arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
