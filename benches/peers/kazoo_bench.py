"""The scenarios of lockkeeper-bench with kazoo: kazoo_bench.py CONNECT SCENARIO key=value…, all keys given.

Prints the same line. See benches/README.md. There is no `multi`: kazoo has no lock of several.
"""

import itertools
import json
import math
import os
import random
import socket
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.queue import LockingQueue

WARMING, MEASURED, OVER = range(3)
PATIENCE = 60.0
READERS_MAX = 1 << 32
COUNTERS = ("zk_packets_received", "zk_cnt_readlatency", "zk_cnt_updatelatency")


class Room:
    """What a lock protects: a plain counter that sees broken exclusion and capacity."""

    violations = 0

    def __init__(self, space):
        self.space = space
        self.taken = 0
        self.lock = threading.Lock()

    def visit(self, needed):
        with self.lock:
            self.taken += needed
            if self.taken > self.space:
                Room.violations += 1
        with self.lock:
            self.taken -= needed


class Bench:
    def __init__(self, connect, scenario, keys):
        self.connect, self.scenario, self.keys = connect, scenario, keys
        self.root = f"/kazoo-bench/{os.getpid()}"
        self.phase = WARMING
        self.times = []
        self.failure = None
        self.clients = []
        for _ in range(self.number("s", 1)):
            client = KazooClient(connect, timeout=self.number("timeout", 30))
            client.start()
            self.clients.append(client)

    def number(self, key, default=None):
        return int(self.keys.get(key, default))

    def client(self, worker):
        return self.clients[worker % len(self.clients)]

    def run(self):
        if self.scenario == "uncontended":
            return self.counted(lap(Lock(self.client(0), f"{self.root}/uncontended"), Room(1), 1))
        if self.scenario == "herd":
            return self.herd()
        if self.scenario == "rebalance":
            return self.rebalance()
        if self.scenario == "queue":
            return self.queue()
        return self.timed(self.laps())

    def laps(self):
        workers = range(self.number("w"))
        one, readers = Room(1), Room(READERS_MAX)
        if self.scenario == "handoff":
            return [lap(Lock(self.client(worker), f"{self.root}/handoff"), one, 1, self.number("hold")) for worker in workers]
        if self.scenario == "semaphore":
            leases = self.number("leases")
            permits = Room(leases)
            path = f"{self.root}/semaphore"
            return [lap(Semaphore(self.client(worker), path, max_leases=leases), permits, 1) for worker in workers]
        if self.scenario == "rw":
            return [self.visitor(worker, readers) for worker in workers]
        if self.scenario == "many":
            rooms = [Room(1) for _ in range(self.number("k"))]
            return [self.wanderer(worker, rooms) for worker in workers]
        raise SystemExit(f"kazoo_bench.py: no scenario {self.scenario}")

    def visitor(self, worker, room):
        rng, percent, path = random.Random(worker), self.number("readpct"), f"{self.root}/rw"
        read = lap(ReadLock(self.client(worker), path), room, 1)
        write = lap(WriteLock(self.client(worker), path), room, READERS_MAX)
        return lambda: (read if rng.randrange(100) < percent else write)()

    def wanderer(self, worker, rooms):
        rng = random.Random(worker)
        paths = [lap(Lock(self.client(worker), f"{self.root}/many/{path}"), room, 1) for path, room in enumerate(rooms)]
        return lambda: rng.choice(paths)()

    def counted(self, go):
        for _ in range(self.number("warmn")):
            go()
        earlier = self.reading()
        for _ in range(self.number("n")):
            self.times.append(go())
        return self.report(earlier, self.reading(), 0)

    def timed(self, laps):
        def work(go):
            while self.phase != OVER:
                times = go()
                if self.phase == MEASURED:
                    self.times.append(times)

        threads = [self.started(work, go) for go in laps]
        time.sleep(self.number("warm"))
        earlier = self.reading()
        self.phase = MEASURED
        time.sleep(self.number("t"))
        self.phase = OVER
        later = self.reading()
        return self.report(earlier, later, self.joined(threads))

    def herd(self):
        path, waiters, room = f"{self.root}/herd", self.number("w"), Room(1)
        held = Lock(self.client(0), path)
        held.acquire()
        opened = [0]
        before, queueing = resident(), time.perf_counter()

        def wait(lock):
            lock.acquire()
            granted = time.perf_counter_ns()
            room.visit(1)
            released = time.perf_counter_ns()
            lock.release()
            self.times.append((granted - opened[0], time.perf_counter_ns() - released))

        threads = [self.started(wait, Lock(self.client(worker), path)) for worker in range(waiters)]
        while len(self.client(0).get_children(path)) <= waiters:
            time.sleep(0.02)
        queued, waiting, earlier = time.perf_counter() - queueing, resident(), self.reading()
        opened[0] = time.perf_counter_ns()
        held.release()
        stuck = self.joined(threads)
        report = self.report(earlier, self.reading(), stuck)
        return report | {"queue_s": round(queued, 3), "rss_before_kb": before, "rss_waiting_kb": waiting}

    def rebalance(self):
        """One more member joins and leaves: the times until all items are held by the members that are there."""
        items = [f"{item:05}" for item in range(self.number("k"))]
        members = [Sharing(self.client(worker), f"{self.root}/rebalance", items, f"member-{worker}") for worker in range(self.number("w"))]
        for sharing in members:
            self.started(sharing.serve)
        before = settled(members, len(items))
        moves, least = 0, 0
        for round in range(self.number("warmn") + self.number("n")):
            if round == self.number("warmn"):
                earlier, moves, least = self.reading(), 0, 0
            asked = time.perf_counter_ns()
            extra = Sharing(self.client(len(members)), f"{self.root}/rebalance", items, "extra")
            self.started(extra.serve)
            after = settled([*members, extra], len(items))
            joined = time.perf_counter_ns()
            extra.is_over = True
            again = settled(members, len(items))
            ended = time.perf_counter_ns()
            share = sum(owner == "extra" for owner in after.values())
            moves += sum(before[item] != after[item] for item in items) + sum(after[item] != again[item] for item in items)
            least, before = least + 2 * share, again
            if round >= self.number("warmn"):
                self.times.append((joined - asked, ended - joined))
        report = self.report(earlier, self.reading(), 0)
        return report | {"moves": moves, "moves_min": least}

    def queue(self):
        """Producers and takers of a LockingQueue. The end of an item is in the time until the next one."""
        path, batch, width = f"{self.root}/queue", self.number("batch"), self.number("bytes", 100)
        room, numbers, ended, puts = threading.Semaphore(self.number("ahead", 1000)), itertools.count(), set(), []
        counted, stopped = threading.Lock(), threading.Event()
        waiting = [0]

        def put(queue, count):
            items = [f"{number:0{width}}".encode() for number in itertools.islice(numbers, count)]
            queue.put(items[0]) if count == 1 else queue.put_all(items)
            with counted:
                waiting[0] += count

        def produce(queue):
            while self.phase != OVER:
                got = 0
                while got < batch and self.phase != OVER:
                    got += room.acquire(timeout=0.1)
                if got == batch:
                    asked = time.perf_counter_ns()
                    put(queue, batch)
                    if self.phase == MEASURED:
                        puts.append(time.perf_counter_ns() - asked)

        def take(queue):
            number = None
            while True:
                asked = time.perf_counter_ns()
                if number is not None:
                    if not queue.consume():
                        raise RuntimeError("the item was not consumed")
                    with counted:
                        Room.violations += number in ended
                        ended.add(number)
                        waiting[0] -= 1
                    room.release()
                number = None
                while number is None:
                    if stopped.is_set():
                        return
                    item = queue.get(timeout=0.5)
                    number = None if item is None else int(item)
                if self.phase == MEASURED:
                    self.times.append((time.perf_counter_ns() - asked, 0))

        first = LockingQueue(self.client(0), path)
        for begin in range(0, self.number("waiting"), 100):
            put(first, min(100, self.number("waiting") - begin))
        producers = [self.started(produce, LockingQueue(self.client(number), path)) for number in range(self.number("p"))]
        takers = [self.started(take, LockingQueue(self.client(number), path)) for number in range(self.number("w"))]
        time.sleep(self.number("warm"))
        earlier = self.reading()
        self.phase = MEASURED
        time.sleep(self.number("t"))
        self.phase = OVER
        later = self.reading()
        stuck = self.joined(producers)
        stopped.set()
        stuck += self.joined(takers)
        left = len(self.client(0).get_children(f"{path}/entries"))
        Room.violations += abs(left - waiting[0])
        puts.sort()
        report = self.report(earlier, later, stuck)
        return report | {"rel_p50_us": at(puts, 0.5), "rel_p99_us": at(puts, 0.99), "left": left}

    def started(self, work, *arguments):
        def guarded():
            try:
                work(*arguments)
            except Exception as error:
                self.failure = error

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def joined(self, threads):
        """Waits for all threads with patience, and returns how many did not come."""
        end = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.001, end - time.monotonic()))
        if self.failure is not None:
            raise self.failure
        return sum(thread.is_alive() for thread in threads)

    def reading(self):
        counters = dict.fromkeys(COUNTERS, 0)
        for host in self.connect.split("/")[0].split(","):
            name, port = host.rsplit(":", 1)
            with socket.create_connection((name, int(port)), timeout=5) as question:
                question.sendall(b"mntr")
                answer = b"".join(iter(lambda: question.recv(65536), b"")).decode()
            for line in answer.splitlines():
                key, _, value = line.partition("\t")
                if key in counters:
                    counters[key] += int(value)
        pids = [pid for pid in os.environ.get("LOCKKEEPER_BENCH_SERVER_PIDS", "").split(",") if pid]
        ticks = 0
        for pid in pids:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                fields = stat.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return time.perf_counter(), counters, time.process_time(), ticks / 100

    def report(self, earlier, later, stuck):
        ops, elapsed = len(self.times), later[0] - earlier[0]
        acquire, release = sorted(pair[0] for pair in self.times), sorted(pair[1] for pair in self.times)
        questions = len(self.connect.split(","))

        def each(spent, decimals):
            return round(spent / ops, decimals) if ops else None

        packets, reads, writes = (later[1][name] - earlier[1][name] for name in COUNTERS)
        return {
            "peer": "kazoo",
            "scenario": self.scenario,
            "params": {key: int(value) if value.isdigit() else value for key, value in self.keys.items()},
            "ops": ops,
            "elapsed_s": round(elapsed, 3),
            "ops_s": round(ops / elapsed, 1),
            "acq_p50_us": at(acquire, 0.5),
            "acq_p99_us": at(acquire, 0.99),
            "rel_p50_us": at(release, 0.5),
            "rel_p99_us": at(release, 0.99),
            "reqs_op": each(packets - questions, 3),
            "reads_op": each(reads, 3),
            "writes_op": each(writes, 3),
            "cli_cpu_us_op": each((later[2] - earlier[2]) * 1e6, 1),
            "srv_cpu_us_op": each((later[3] - earlier[3]) * 1e6, 1),
            "rss_kb": resident(),
            "violations": Room.violations,
            "stuck_workers": stuck,
        }


class Sharing:
    """A member of a SetPartitioner, as its documentation serves it."""

    def __init__(self, client, path, items, identifier):
        self.identifier, self.held, self.is_over = identifier, frozenset(), False
        self.partitioner = SetPartitioner(client, path, items, identifier=identifier)

    def serve(self):
        while not self.is_over:
            if self.partitioner.failed:
                raise RuntimeError("the partitioner has failed")
            if self.partitioner.release:
                self.held = frozenset()
                self.partitioner.release_set()
            elif self.partitioner.acquired:
                self.held = frozenset(self.partitioner)
                time.sleep(0.001)
            elif self.partitioner.allocating:
                self.partitioner.wait_for_acquire(timeout=1)
        self.held = frozenset()
        self.partitioner.finish()


def settled(members, count):
    """Waits until the members hold all items, each of them some, and returns the owner of each item."""
    while True:
        owners = {item: member.identifier for member in members for item in member.held}
        if len(owners) == count == sum(len(member.held) for member in members) and all(member.held for member in members):
            return owners
        time.sleep(0.001)


def lap(lock, room, space, hold=0):
    """One operation: takes the lock, holds it for so many milliseconds and gives it back. Tells how long the taking and the
    giving back took, in nanoseconds."""

    def go():
        asked = time.perf_counter_ns()
        lock.acquire()
        granted = time.perf_counter_ns()
        room.visit(space)
        if hold:
            time.sleep(hold / 1000)
        released = time.perf_counter_ns()
        lock.release()
        return granted - asked, time.perf_counter_ns() - released

    return go


def at(times, quantile):
    if not times:
        return None
    return round(times[min(len(times) - 1, math.ceil(quantile * len(times)) - 1)] / 1000, 1)


def resident():
    with open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return None


def main():
    connect, scenario, *pairs = sys.argv[1:]
    report = Bench(connect, scenario, dict(pair.split("=", 1) for pair in pairs)).run()
    print(json.dumps(report), flush=True)
    # Stuck threads are not waited for.
    os._exit(1 if report["violations"] else 0)


if __name__ == "__main__":
    main()
