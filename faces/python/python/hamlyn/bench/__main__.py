"""The command: see the package."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
from typing import Any, Callable

import hamlyn

from . import __doc__ as about
from .measure import measure
from .ways import version_of, ways

LENGTHS = [8, 64, 1024, 16 << 10, 256 << 10, 1 << 20, 4 << 20]


def _length(length: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if length >= unit and length % unit == 0:
            return f"{length // unit} {name}"
    return f"{length} B"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hamlyn.bench", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--plot", metavar="DIR", type=pathlib.Path, help="make pictures there (needs matplotlib)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; the best counts")
    parser.add_argument("--seconds", type=float, default=0.4, help="how long each measurement takes")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="bytes of the messages")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0 or min(options.lengths) < 1:
        parser.error("there must be a round, some time, and a byte")
    kinds = ways()
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    for length in options.lengths:
        for _ in range(options.rounds):
            for kind in kinds:
                runs.setdefault((kind.name, length), []).append(measure(kind, length, options.seconds))
    figures = [
        {
            "way": way,
            "length_bytes": length,
            "one_way_ns": min(run["one_way_ns"] for run in found),
            "one_way_ns_median": statistics.median(run["one_way_ns"] for run in found),
            "messages_per_second": max(run["messages_per_second"] for run in found),
            "bytes_per_second": max(run["messages_per_second"] for run in found) * length,
        }
        for (way, length), found in runs.items()
    ]
    machine = {
        "hamlyn": hamlyn.__version__,
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "versions": [version for kind in kinds if (version := version_of(kind))],
    }
    if options.json:
        json.dump({"machine": machine, "figures": figures}, sys.stdout, indent=1)
        print()
    else:
        _print(machine, figures, options.lengths)
    if options.plot is not None:
        _plot(figures, options.plot)
    return 0


def _print(machine: dict[str, Any], figures: list[dict[str, Any]], lengths: list[int]) -> None:
    print(", ".join(f"{key} {value}" for key, value in machine.items() if key != "versions"), *machine["versions"])
    names = list(dict.fromkeys(figure["way"] for figure in figures))
    tables: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("one way, microseconds, the best of all rounds", lambda figure: f"{figure['one_way_ns'] / 1000:.2f}"),
        ("messages each second, thousands", lambda figure: f"{figure['messages_per_second'] / 1000:.1f}"),
        ("MB each second", lambda figure: f"{figure['bytes_per_second'] / 1e6:.0f}"),
    ]
    for title, value in tables:
        print(f"\n{title}")
        print(f"{'':26}" + "".join(f"{_length(length):>10}" for length in lengths))
        for name in names:
            row = {figure["length_bytes"]: value(figure) for figure in figures if figure["way"] == name}
            print(f"{name:26}" + "".join(f"{row[length]:>10}" for length in lengths))


def _plot(figures: list[dict[str, Any]], directory: pathlib.Path) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        sys.exit("pictures need matplotlib: pip install matplotlib")
    directory.mkdir(parents=True, exist_ok=True)
    for key, title in (("one_way_ns", "one way, ns"), ("messages_per_second", "messages/s"), ("bytes_per_second", "bytes/s")):
        figure, axes = pyplot.subplots(figsize=(8, 5))
        for name in dict.fromkeys(row["way"] for row in figures):
            rows = [row for row in figures if row["way"] == name]
            style = "-" if name.startswith("hamlyn") else "--"
            axes.plot([row["length_bytes"] for row in rows], [row[key] for row in rows], style, marker="o", label=name)
        axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel=title)
        axes.legend()
        axes.grid(True, alpha=0.3)
        figure.tight_layout()
        figure.savefig(directory / f"{key}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
