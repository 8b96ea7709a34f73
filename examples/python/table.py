"""A key-value table in the memory of its owner that many writers fill by tagged writes, without a lock or a call of the kernel. Each writer
is told rows of its own; the tag of a write says which row is new. Writers must not disturb each other: they are trusted with the whole
table. For others there are slots in paranoid mode (docs/security.md).

    python table.py own 3           # prints the table when three pairs have come
    python table.py put tea=2 milk=1
    python table.py put salt=7
"""

from __future__ import annotations

import struct
import sys

import hamlyn

WAIT = 10
WRITERS = 8
ROWS_EACH = 16
ROWS = WRITERS * ROWS_EACH
# A key and a value, each filled up with zeros.
ROW = struct.Struct("24s40s")


def own(pairs: int) -> None:
    with hamlyn.open("table") as owner:
        table = owner.bind_tagged_write("pairs", area_bytes=ROWS * ROW.size, tags=ROWS)
        for writer in range(WRITERS):
            # Offered once: no two writers get the same rows.
            owner.offer("rows", str(writer * ROWS_EACH).encode(), once=True)

        def row(tag: int) -> list[str]:
            # Another may send any tag: what names no row raises.
            return [text.rstrip(b"\0").decode(errors="replace") for text in ROW.unpack(table.area.read(tag * ROW.size, ROW.size))]

        row_of = {}
        for _ in range(pairs):
            tag = table.get_tag()
            row_of[row(tag)[0]] = tag
        for key, tag in sorted(row_of.items()):
            print(f"{key}={row(tag)[1]}")


def put(pairs: list[str]) -> None:
    if len(pairs) > ROWS_EACH:
        sys.exit(f"a writer has {ROWS_EACH} rows")
    with hamlyn.open() as me:
        first_row = int(me.ask("table", "rows", WAIT))
        table = me.connect_tagged_write("table/pairs", WAIT)
        for number, pair in enumerate(pairs, first_row):
            key, equals, value = pair.encode().partition(b"=")
            if not equals or len(key) > 24 or len(value) > 40:
                sys.exit(f"{pair}: a pair is KEY=VALUE, with a key of up to 24 bytes and a value of up to 40")
            table.send(number * ROW.size, ROW.pack(key, value), number, WAIT)
        try:
            table.fence(WAIT)
        except hamlyn.PeerGone:
            pass  # the owner has what it wanted


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "own":
        own(int(sys.argv[2]))
    elif len(sys.argv) >= 2 and sys.argv[1] == "put":
        put(sys.argv[2:])
    else:
        sys.exit("usage: table.py own PAIRS | table.py put KEY=VALUE...")
