"""A halo exchange: heat spreads over a grid that several processes share, each a block of rows. Before each step a process writes its outer
rows into the memory of its neighbours, where they are the halo of their blocks; a tag says that a row is there.

    python halo.py 4                # four processes; each checks its block

There are two halos of each side, used in turn: a neighbour may be one step ahead, and no more, because it waits for a row of this process.
"""

from __future__ import annotations

import multiprocessing
import sys

import hamlyn
import numpy

WAIT = 60
ROWS, COLUMNS, STEPS = 120, 200, 100
ROW_BYTES = COLUMNS * 8
ABOVE, BELOW = 0, 1


def beginning() -> numpy.ndarray:
    grid = numpy.zeros((ROWS, COLUMNS))
    grid[0] = 100.0
    grid[ROWS // 2, COLUMNS // 4 : COLUMNS // 2] = -50.0
    return grid


def step(block: numpy.ndarray) -> None:
    """One step of all but the outer rows and columns, which stay as they are."""
    inner = block[1:-1, 1:-1]
    inner += 0.2 * (block[:-2, 1:-1] + block[2:, 1:-1] + block[1:-1, :-2] + block[1:-1, 2:] - 4 * inner)


def compute(rank: int, ranks: int) -> None:
    first, last = rank * ROWS // ranks, (rank + 1) * ROWS // ranks
    with hamlyn.open(f"rank{rank}") as me:
        halos = me.bind_tagged_write("halos", area_bytes=4 * ROW_BYTES, tags=4)
        above = me.connect_tagged_write(f"rank{rank - 1}/halos", WAIT) if rank > 0 else None
        below = me.connect_tagged_write(f"rank{rank + 1}/halos", WAIT) if rank + 1 < ranks else None
        # The block has a row more on each side that has a neighbour.
        top, bottom = first - (above is not None), last + (below is not None)
        block = beginning()[top:bottom].copy()

        for number in range(STEPS):
            turn = number % 2 * 2
            # This process lies below the one above it, and above the one below it.
            if above is not None:
                above.send((turn + BELOW) * ROW_BYTES, block[1], 2 * number + BELOW, WAIT)
            if below is not None:
                below.send((turn + ABOVE) * ROW_BYTES, block[-2], 2 * number + ABOVE, WAIT)
            for side, neighbour, row in ((ABOVE, above, block[0]), (BELOW, below, block[-1])):
                if neighbour is not None:
                    if halos.get_specific_tag(2 * number + side, WAIT) is None:
                        sys.exit(f"rank {rank}: a neighbour is late")
                    halos.area.read_into(row, (turn + side) * ROW_BYTES)
            step(block)
        me.flush(WAIT)

    whole = beginning()
    for _ in range(STEPS):
        step(whole)
    if not numpy.array_equal(block[first - top : last - top], whole[first:last]):
        sys.exit(f"rank {rank}: its block is wrong")


def main(ranks: int) -> None:
    if not 1 <= ranks <= ROWS // 2:
        sys.exit(f"there are 1 to {ROWS // 2} processes, so that each has two rows")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=compute, args=(rank, ranks)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode != 0 for process in processes):
        sys.exit(1)
    print(f"{ranks} processes agree with one")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: halo.py PROCESSES")
    main(int(sys.argv[1]))
