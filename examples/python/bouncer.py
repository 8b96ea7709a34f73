"""Revocation: a service that dismisses a client which asks for what it must not. Its key is worthless from then on; others are served as
before.

    python bouncer.py serve 2            # ends after two good calls
    python bouncer.py ask public         # prints the answer
    python bouncer.py ask secret public  # is dismissed, and gets no answer to the other call either
"""

from __future__ import annotations

import sys

import hamlyn


def serve(calls: int) -> None:
    with hamlyn.open("door") as door:
        service = door.bind_service("service")
        while calls > 0:
            call = service.recv()
            if call != b"secret":
                call.reply(b"come in")
                calls -= 1
                continue
            client = call.client
            if client is not None:
                print(f"process {client.process} of user {client.user} is dismissed")
                call.release()
                service.dismiss(client)
        # The last answer has left this program before it ends.
        door.flush(timeout=10)


def ask(calls: list[str]) -> None:
    with hamlyn.open() as me:
        door = me.connect_service("door/service", timeout=10)
        for what in calls:
            try:
                print(door.call_bytes(what.encode(), timeout=10).decode())
            except hamlyn.Error as error:
                print(error)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    elif len(sys.argv) >= 3 and sys.argv[1] == "ask":
        ask(sys.argv[2:])
    else:
        sys.exit("usage: bouncer.py serve CALLS | bouncer.py ask WHAT...")
