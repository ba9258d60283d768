"""The scenarios of lockkeeper-redis-bench with redis-py: redis_py_bench.py URL SCENARIO key=value…

Prints the same line. See benches/README.md. The connections of a client are a pool; `s` is the number of clients.
"""

import json
import sys
import threading
import time

import redis

KEY = "lockkeeper-redis-bench"
LEASE = 30


def quantile(times, at):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * at))] * 1e6 if times else None


class Seen:
    """The thread that held the lock last, and how often that was another one than before."""

    last = None
    changes = 0


def cycle(lock, acquired, released):
    asked = time.monotonic()
    if not lock.acquire():
        raise SystemExit("the lock was not granted")
    taken = time.monotonic()
    if Seen.last != threading.get_ident():
        Seen.last = threading.get_ident()
        Seen.changes += 1
    lock.release()
    acquired.append(taken - asked)
    released.append(time.monotonic() - taken)


def uncontended(url, n=1000, warmn=200):
    lock = redis.Redis.from_url(url).lock(KEY, timeout=LEASE)
    for _ in range(warmn):
        cycle(lock, [], [])
    acquired, released = [], []
    begun = time.monotonic()
    for _ in range(n):
        cycle(lock, acquired, released)
    return acquired, released, time.monotonic() - begun


def handoff(url, w=10, s=2, t=5):
    clients = [redis.Redis.from_url(url) for _ in range(s)]
    acquired, released = [], []
    begun = time.monotonic()

    def work(client):
        lock = client.lock(KEY, timeout=LEASE)
        while time.monotonic() < begun + t:
            cycle(lock, acquired, released)

    workers = [threading.Thread(target=work, args=(clients[number % s],)) for number in range(w)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return acquired, released, time.monotonic() - begun


def main():
    url, scenario, *words = sys.argv[1:]
    keys = {key: int(value) for key, value in (word.split("=", 1) for word in words)}
    before = time.process_time()
    acquired, released, elapsed = {"uncontended": uncontended, "handoff": handoff}[scenario](url, **keys)
    print(
        json.dumps(
            {
                "peer": "redis-py",
                "scenario": scenario,
                "params": words,
                "ops": len(acquired),
                "elapsed_s": elapsed,
                "ops_s": len(acquired) / elapsed,
                "changes_s": Seen.changes / elapsed,
                "acq_p50_us": quantile(acquired, 0.5),
                "acq_p99_us": quantile(acquired, 0.99),
                "rel_p50_us": quantile(released, 0.5),
                "rel_p99_us": quantile(released, 0.99),
                "cli_cpu_us_op": (time.process_time() - before) * 1e6 / max(1, len(acquired)),
            }
        )
    )


main()
