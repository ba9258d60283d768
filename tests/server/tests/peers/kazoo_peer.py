"""Runs kazoo's own recipes against the server at the address given, and fails where one misbehaves.

The clients are independent sessions, so that exclusion is the server's doing. Every wait has an end.
"""

import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NoAuthError, NoNodeError, NodeExistsError
from kazoo.protocol.states import KazooState
from kazoo.security import CREATOR_ALL_ACL

HOSTS = sys.argv[1]
PATIENCE = 20


def client(**options):
    made = KazooClient(hosts=HOSTS, timeout=5, **options)
    made.start(timeout=PATIENCE)
    return made


def excludes(make_lock, path):
    """No two of three contenders are inside at once, and every one gets in."""
    clients = [client() for _ in range(3)]
    inside, worst, entries = [0], [0], [0]
    guard = threading.Lock()

    def contend(own):
        for _ in range(5):
            with make_lock(own, path):
                with guard:
                    inside[0] += 1
                    worst[0] = max(worst[0], inside[0])
                    entries[0] += 1
                with guard:
                    inside[0] -= 1

    threads = [threading.Thread(target=contend, args=(own,)) for own in clients]
    [thread.start() for thread in threads]
    [thread.join(PATIENCE) for thread in threads]
    assert worst[0] == 1 and entries[0] == 15, (worst, entries)
    [own.stop() for own in clients]


def lock():
    excludes(lambda own, path: own.Lock(path, "me"), "/kazoo/lock")
    first, second = client(), client()
    held = first.Lock("/kazoo/line", "first")
    held.acquire()
    waiting = second.Lock("/kazoo/line", "second")
    assert not waiting.acquire(blocking=False)
    try:
        waiting.acquire(timeout=0.2)
        raise AssertionError("a held lock was acquired")
    except LockTimeout:
        pass
    assert held.contenders() == ["first"]
    first.stop()
    assert waiting.acquire(timeout=PATIENCE), "a closed session frees its lock"
    second.stop()


def read_write_lock():
    excludes(lambda own, path: own.WriteLock(path, "me"), "/kazoo/rw")
    one, two, three = client(), client(), client()
    readers = [one.ReadLock("/kazoo/rw2"), two.ReadLock("/kazoo/rw2")]
    assert all(reader.acquire(timeout=PATIENCE) for reader in readers), "readers share"
    writer = three.WriteLock("/kazoo/rw2")
    assert not writer.acquire(blocking=False)
    [reader.release() for reader in readers]
    assert writer.acquire(timeout=PATIENCE)
    [own.stop() for own in (one, two, three)]


def semaphore():
    clients = [client() for _ in range(3)]
    semaphores = [own.Semaphore("/kazoo/semaphore", max_leases=2) for own in clients]
    assert semaphores[0].acquire(timeout=PATIENCE) and semaphores[1].acquire(timeout=PATIENCE)
    assert not semaphores[2].acquire(blocking=False)
    semaphores[0].release()
    assert semaphores[2].acquire(timeout=PATIENCE)
    [own.stop() for own in clients]


def counter():
    clients = [client() for _ in range(3)]

    def count(own):
        number = own.Counter("/kazoo/counter")
        for _ in range(10):
            number += 1

    threads = [threading.Thread(target=count, args=(own,)) for own in clients]
    [thread.start() for thread in threads]
    [thread.join(PATIENCE) for thread in threads]
    assert clients[0].Counter("/kazoo/counter").value == 30
    [own.stop() for own in clients]


def election_and_party():
    own, other = client(), client()
    led = threading.Event()
    own.Election("/kazoo/election", "me").run(led.set)
    assert led.is_set()
    party = own.Party("/kazoo/party", "me")
    party.join()
    assert list(other.Party("/kazoo/party")) == ["me"]
    own.stop()
    other.stop()


def watches():
    own, other = client(), client()
    seen, arrived = [], threading.Event()

    own.ensure_path("/kazoo/watched")

    @own.ChildrenWatch("/kazoo/watched")
    def look(children):
        seen.append(sorted(children))
        if "b" in children:
            arrived.set()

    other.create("/kazoo/watched/a")
    other.create("/kazoo/watched/b")
    assert arrived.wait(PATIENCE), seen
    own.stop()
    other.stop()


def transactions_and_errors():
    own = client()
    own.ensure_path("/kazoo/t")
    transaction = own.transaction()
    transaction.create("/kazoo/t/a", b"1")
    transaction.set_data("/kazoo/t/a", b"2")
    transaction.check("/kazoo/t", 0)
    assert transaction.commit()[0] == "/kazoo/t/a"
    assert own.get("/kazoo/t/a")[0] == b"2"
    for error, act in [
        (NodeExistsError, lambda: own.create("/kazoo/t/a")),
        (NoNodeError, lambda: own.get("/kazoo/t/none")),
    ]:
        try:
            act()
            raise AssertionError(error)
        except error:
            pass
    own.stop()


def session_survives_a_lost_connection():
    own = client()
    back = threading.Event()
    states = []

    def listen(state):
        states.append(state)
        if state == KazooState.CONNECTED and KazooState.SUSPENDED in states:
            back.set()

    own.add_listener(listen)
    own.create("/kazoo/mine", ephemeral=True, makepath=True)
    session = own.client_id[0]
    own._connection._socket.shutdown(2)
    assert back.wait(PATIENCE), states
    assert own.client_id[0] == session and own.exists("/kazoo/mine").ephemeralOwner == session
    own.stop()


def access_lists_of_the_creator():
    """kazoo writes the empty id of `auth` as a null."""
    own = client(auth_data=[("digest", "me:secret")], default_acl=CREATOR_ALL_ACL)
    own.ensure_path("/kazoo/own")
    own.create("/kazoo/own/a", b"1")
    own.create("/kazoo/own/b", b"1", include_data=True)
    transaction = own.transaction()
    transaction.create("/kazoo/own/c", b"1")
    assert transaction.commit() == ["/kazoo/own/c"]
    own.set_acls("/kazoo/own/a", CREATOR_ALL_ACL)
    stranger = client()
    for name in own.get_children("/kazoo/own"):
        assert own.get_acls(f"/kazoo/own/{name}")[0][0].id.scheme == "digest"
        try:
            stranger.get(f"/kazoo/own/{name}")
            raise AssertionError("a stranger reads " + name)
        except NoAuthError:
            pass
    own.stop()
    stranger.stop()


def version_of_the_server():
    own = client()
    assert own.server_version() == (3, 8, 0)
    own.stop()


if __name__ == "__main__":
    for check in [
        lock,
        read_write_lock,
        semaphore,
        counter,
        election_and_party,
        watches,
        transactions_and_errors,
        session_survives_a_lost_connection,
        access_lists_of_the_creator,
        version_of_the_server,
    ]:
        check()
        print("ok:", check.__name__, flush=True)
