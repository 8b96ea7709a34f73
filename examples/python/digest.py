"""A file digested in parallel: each worker is told a part of the file, and sends its SHA-256. A group makes one message of all digests, so
the owner is woken once, whichever worker is the last.

    python digest.py gather FILE 3  # prints the SHA-256 of the digests of three parts
    python digest.py work           # three of them, at any time, before or after
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys

import hamlyn

WAIT = 10
# All workers together may take that long.
WORK = 60
# The number of a part, and its digest.
RESULT = struct.Struct("<Q32s")


def gather(file: str, workers: int) -> None:
    path = os.path.realpath(file)
    file_bytes = os.path.getsize(path)
    if not 1 <= workers <= 1000:
        sys.exit("there must be 1 to 1000 workers")
    part_bytes = (file_bytes + workers - 1) // workers
    with hamlyn.open("digester") as owner:
        digests = owner.bind_group("digests", workers * RESULT.size)
        digests.begin_shared([RESULT.size] * workers)
        for number in range(workers):
            begin = min(file_bytes, number * part_bytes)
            end = min(file_bytes, begin + part_bytes)
            # Offered once: no two workers get the same part.
            owner.offer("part", f"{number} {begin} {end - begin} {path}".encode(), once=True)

        results = digests.recv(WORK)
        if results is None:
            sys.exit("a worker is missing, or has not finished in a minute")
        by_number = dict(RESULT.iter_unpack(results))
        if by_number.keys() != set(range(workers)):
            sys.exit("a part came twice, or is missing")
        print(hashlib.sha256(b"".join(by_number[number] for number in range(workers))).hexdigest())


def work() -> None:
    with hamlyn.open() as me:
        number, begin, length, path = me.ask("digester", "part", WAIT).decode().split(" ", 3)
        digest = hashlib.sha256()
        left = int(length)
        with open(path, "rb") as file:
            file.seek(int(begin))
            while left > 0:
                data = file.read(min(left, 1 << 16))
                if not data:
                    sys.exit("the file has become shorter")
                digest.update(data)
                left -= len(data)
        digests = me.connect_group("digester/digests", WAIT)
        digests.send_last(0, RESULT.pack(int(number), digest.digest()), WAIT)
        # Handed over; it is there whether this program ends or not.
        me.flush(WAIT)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "gather":
        gather(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:] == ["work"]:
        work()
    else:
        sys.exit("usage: digest.py gather FILE WORKERS | digest.py work")
