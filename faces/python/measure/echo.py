"""What faces/c/measure/echo.c does, in Python, for `hamlyn-lab bench --faces`.

echo.py lead|answer LENGTH COUNT NAMESPACE
"""

import sys
import time

import hamlyn

BATCHES = 11
MINUTE = 60


def main() -> None:
    role, length, count, namespace = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    leads = role == "lead"
    payload = bytes([7]) * length
    with hamlyn.open(role, namespace=namespace) as manager:
        incoming = manager.bind_stream("in")
        outgoing = manager.connect_stream("answer/in" if leads else "lead/in", MINUTE)
        send, recv = outgoing.send, incoming.recv

        def look() -> None:
            """Looks at the record where it lies."""
            with recv(MINUTE) as record:
                view = memoryview(record)
                is_it = len(view) == length and view[0] == 7 and view[-1] == 7
                view.release()
            if not is_it:
                sys.exit("echo.py: another record came")

        def lead() -> None:
            for _ in range(count):
                send(payload, MINUTE)
                look()

        def finished() -> bool:
            try:
                look()
            except hamlyn.Closed:
                return True
            return False

        if leads:
            lead()
            for _ in range(BATCHES):
                begun_ns = time.perf_counter_ns()
                lead()
                print(f"{(time.perf_counter_ns() - begun_ns) / count / 2:.1f}")
            outgoing.close(MINUTE)
            finished()  # The other closes when it has seen the end, and is waited for.
        else:
            while not finished():
                send(payload, MINUTE)


if __name__ == "__main__":
    main()
