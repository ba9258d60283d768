"""A Python service that acquires kazoo's own locks, driven line by line by a test in another language.

Started with the connect string and the session timeout in milliseconds. Says "ready <session, hex>" once it is
connected. Every line it reads is "<tag> <verb> <argument>...", separated by single spaces:

    acquire THREAD PATH MILLISECONDS   kazoo's Lock; answers "CZXID NODE", or nothing when the time was up;
                                       negative: none
    release THREAD PATH                answers nothing
    blind THREAD PATH MILLISECONDS     as acquire, with a Lock that counts no names but kazoo's; given back by release
    read THREAD PATH MILLISECONDS      as acquire, kazoo's ReadLock
    unread THREAD PATH                 as release
    write THREAD PATH MILLISECONDS     as acquire, kazoo's WriteLock
    unwrite THREAD PATH                as release
    party THREAD PATH                  joins a Party with the identifier THREAD; left by depart; answers nothing
    shallow THREAD PATH                the same, a ShallowParty
    depart THREAD PATH                 answers nothing
    addint THREAD PATH NUMBER TIMES    kazoo's Counter in Curator's bytes; answers the last number
    barrier THREAD PATH set|remove|MS  kazoo's Barrier; a wait answers "free", or nothing when the time was up
    datawatch THREAD PATH              watches the node with kazoo's DataWatch; answers nothing
    data THREAD PATH                   the data that it showed last, after "="; nothing if the node does not exist
    childwatch THREAD PATH             watches the children with kazoo's ChildrenWatch; answers nothing
    children THREAD PATH               the names that it showed last, in order, separated by commas
    meet THREAD PATH COUNT MS          enters kazoo's DoubleBarrier: answers "in"
    quit THREAD PATH MS                leaves it: answers "out"
    offer THREAD PATH KIND LOCKS DETAIL VALUE,...
                                       puts items into a LockingQueue with the priority DETAIL; answers nothing
    workoff THREAD PATH KIND LOCKS RECEIPTS
                                       takes items from now on: each is a node RECEIPTS/VALUE- with a sequence
                                       number; answers nothing
    exit                               closes the session, answers, and ends

It answers "<tag> ok <answer>" or "<tag> failed <why>", in the order in which things get done. Each THREAD named is one.
The end of its input is the end of whoever started it: it ends at once, and its session is left to expire.
"""

import os
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

# Which names of others count as contenders: kazoo's own option for that.
LOCKS = ["-lock-"]
WRITERS = ["__WRIT__"]
ALL = ["__WRIT__", "__READ__"]


class Peer:
    def __init__(self, servers, milliseconds):
        self.client = KazooClient(hosts=servers, timeout=milliseconds / 1000)
        self.client.start(timeout=60)
        self.threads = {}
        self.held = {}
        self.output = threading.Lock()

    def say(self, line):
        with self.output:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def hear(self, line):
        tag, verb, *arguments = line.split(" ")
        if verb == "exit":
            self.client.stop()
            self.say(f"{tag} ok ")
            os._exit(0)
        thread = arguments[0]
        if thread not in self.threads:
            self.threads[thread] = queue.Queue()
            threading.Thread(target=self.work, args=(thread,), daemon=True).start()
        self.threads[thread].put((tag, verb, arguments))

    def work(self, thread):
        while True:
            tag, verb, arguments = self.threads[thread].get()
            try:
                self.say(f"{tag} ok {self.do(verb, arguments)}")
            except Exception as error:
                self.say(f"{tag} failed {type(error).__name__} {error}".replace("\n", " "))

    def do(self, verb, arguments):
        thread, path = arguments[:2]
        watching = ("datawatch", "data", "childwatch", "children")
        if verb in ("addint", "barrier", "meet", "quit", "offer", "workoff", *watching):
            return getattr(self, verb)(thread, path, *arguments[2:])
        makers = {
            "acquire": ("release", lambda: self.client.Lock(path, thread, extra_lock_patterns=LOCKS)),
            "blind": ("release", lambda: self.client.Lock(path, thread)),
            "read": ("unread", lambda: self.client.ReadLock(path, thread, extra_lock_patterns=WRITERS)),
            "write": ("unwrite", lambda: self.client.WriteLock(path, thread, extra_lock_patterns=ALL)),
        }
        parties = {"party": self.client.Party, "shallow": self.client.ShallowParty}
        if verb in parties:
            party = self.held[(thread, "depart", path)] = parties[verb](path, thread)
            party.join()
            return ""
        if verb == "depart":
            self.held.pop((thread, verb, path)).leave()
            return ""
        if verb not in makers:
            self.held.pop((thread, verb, path)).release()
            return ""
        end, make = makers[verb]
        # One for each acquire, as kazoo looks for an older node of the same object first.
        lock, milliseconds = make(), int(arguments[2])
        try:
            got = lock.acquire(timeout=None if milliseconds < 0 else milliseconds / 1000)
        except LockTimeout:
            got = False
        if not got:
            return ""
        node = f"{path}/{lock.node}"
        stat = self.client.exists(node)
        self.held[(thread, end, path)] = lock
        return f"{stat.czxid} {node}"

    def addint(self, _thread, path, number, times):
        counter = self.client.Counter(path, support_curator=True)
        for _ in range(int(times)):
            counter += int(number)
        return str(counter.value)

    def barrier(self, _thread, path, what):
        barrier = self.client.Barrier(path)
        if what == "set":
            barrier.create()
        elif what == "remove":
            barrier.remove()
        else:
            return "free" if barrier.wait(timeout=int(what) / 1000) else ""
        return ""

    def datawatch(self, thread, path):
        shown = self.held[(thread, "data", path)] = [None]

        @self.client.DataWatch(path)
        def changed(data, stat):
            shown[0] = None if stat is None else data.decode()

        return ""

    def data(self, thread, path):
        shown = self.held[(thread, "data", path)][0]
        return "" if shown is None else f"={shown}"

    def childwatch(self, thread, path):
        shown = self.held[(thread, "children", path)] = [[]]

        @self.client.ChildrenWatch(path)
        def changed(names):
            shown[0] = sorted(names)

        return ""

    def children(self, thread, path):
        return ",".join(self.held[(thread, "children", path)][0])

    def meet(self, thread, path, count, _milliseconds):
        barrier = self.client.DoubleBarrier(path, int(count), identifier=thread)
        self.held[(thread, "quit", path)] = barrier
        barrier.enter()
        return "in"

    def offer(self, _thread, path, _kind, _locks, priority, values):
        entries = [value.encode() for value in values.split(",")]
        self.client.LockingQueue(path).put_all(entries, int(priority))
        return ""

    def workoff(self, _thread, path, _kind, _locks, receipts):
        threading.Thread(target=self.work_off, args=(path, receipts), daemon=True).start()
        return ""

    def work_off(self, path, receipts):
        entries = self.client.LockingQueue(path)
        while True:
            value = entries.get()
            if value is not None:
                self.toil()
                receipt = f"{receipts}/{value.decode()}-"
                self.client.retry(self.client.create, receipt, b"", sequence=True, makepath=True)
                self.toil()
                entries.consume()

    def toil(self):
        # Some requests, during which the process may be killed.
        for _ in range(20):
            self.client.retry(self.client.exists, "/")

    def quit(self, thread, path, _milliseconds):
        self.held.pop((thread, "quit", path)).leave()
        return "out"


def main():
    peer = Peer(sys.argv[1], int(sys.argv[2]))
    peer.say(f"ready {peer.client.client_id[0] & 0xFFFFFFFFFFFFFFFF:x}")
    for line in sys.stdin:
        peer.hear(line.rstrip("\n"))
    os._exit(1)


main()
