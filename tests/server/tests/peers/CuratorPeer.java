import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.data.Stat;

/** Runs Curator's own recipes against the server at the address given, and fails where one misbehaves. */
public class CuratorPeer {
    static final int PATIENCE = 20;
    static String address;

    interface Check {
        void run() throws Exception;
    }

    static CuratorFramework client() {
        CuratorFramework client = CuratorFrameworkFactory.newClient(address, 5000, 5000, new RetryNTimes(5, 100));
        client.start();
        return client;
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    interface Locks {
        InterProcessLock make(CuratorFramework client);
    }

    /** No two of three sessions are inside at once, and every one gets in. */
    static void excludes(Locks locks) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger entries = new AtomicInteger();
        ExecutorService threads = Executors.newFixedThreadPool(3);
        List<Future<Object>> done = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            done.add(threads.submit((Callable<Object>) () -> {
                try (CuratorFramework own = client()) {
                    InterProcessLock lock = locks.make(own);
                    for (int n = 0; n < 5; n++) {
                        that(lock.acquire(PATIENCE, TimeUnit.SECONDS), "acquired in time");
                        that(inside.incrementAndGet() == 1, "alone inside");
                        entries.incrementAndGet();
                        inside.decrementAndGet();
                        lock.release();
                    }
                }
                return null;
            }));
        }
        for (Future<Object> one : done) {
            one.get(PATIENCE, TimeUnit.SECONDS);
        }
        threads.shutdown();
        that(entries.get() == 15, "everyone got in");
    }

    static void mutex() throws Exception {
        excludes(own -> new InterProcessMutex(own, "/curator/mutex"));
        try (CuratorFramework one = client(); CuratorFramework two = client()) {
            InterProcessMutex held = new InterProcessMutex(one, "/curator/held");
            held.acquire();
            held.acquire();
            InterProcessMutex other = new InterProcessMutex(two, "/curator/held");
            that(!other.acquire(200, TimeUnit.MILLISECONDS), "a held mutex is not acquired");
            held.release();
            that(!other.acquire(200, TimeUnit.MILLISECONDS), "a reentrant hold is one hold");
            held.release();
            that(other.acquire(PATIENCE, TimeUnit.SECONDS), "a released mutex is acquired");
            Stat parent = one.checkExists().forPath("/curator/held");
            that(parent.getEphemeralOwner() == 0, "the parent is a container");
        }
    }

    static void semaphoreMutex() throws Exception {
        excludes(own -> new InterProcessSemaphoreMutex(own, "/curator/semaphore-mutex"));
    }

    static void multiLock() throws Exception {
        excludes(own -> new InterProcessMultiLock(own, List.of("/curator/multi/a", "/curator/multi/b")));
    }

    static void readWriteLock() throws Exception {
        excludes(own -> new InterProcessReadWriteLock(own, "/curator/rw").writeLock());
        try (CuratorFramework one = client(); CuratorFramework two = client(); CuratorFramework three = client()) {
            InterProcessReadWriteLock a = new InterProcessReadWriteLock(one, "/curator/rw2");
            InterProcessReadWriteLock b = new InterProcessReadWriteLock(two, "/curator/rw2");
            InterProcessReadWriteLock c = new InterProcessReadWriteLock(three, "/curator/rw2");
            that(a.readLock().acquire(PATIENCE, TimeUnit.SECONDS), "first reader");
            that(b.readLock().acquire(PATIENCE, TimeUnit.SECONDS), "second reader");
            that(!c.writeLock().acquire(200, TimeUnit.MILLISECONDS), "readers keep a writer out");
            a.readLock().release();
            b.readLock().release();
            that(c.writeLock().acquire(PATIENCE, TimeUnit.SECONDS), "writer after readers");
            that(c.readLock().acquire(PATIENCE, TimeUnit.SECONDS), "downgrade");
            c.writeLock().release();
            that(a.readLock().acquire(PATIENCE, TimeUnit.SECONDS), "reader beside the downgraded writer");
        }
    }

    static void semaphore() throws Exception {
        try (CuratorFramework one = client(); CuratorFramework two = client()) {
            InterProcessSemaphoreV2 a = new InterProcessSemaphoreV2(one, "/curator/semaphore", 2);
            InterProcessSemaphoreV2 b = new InterProcessSemaphoreV2(two, "/curator/semaphore", 2);
            Lease first = a.acquire(PATIENCE, TimeUnit.SECONDS);
            Lease second = b.acquire(PATIENCE, TimeUnit.SECONDS);
            that(first != null && second != null, "two leases");
            that(a.acquire(200, TimeUnit.MILLISECONDS) == null, "no third lease");
            b.returnLease(second);
            that(a.acquire(PATIENCE, TimeUnit.SECONDS) != null, "a returned lease is given again");
        }
    }

    static void counters() throws Exception {
        try (CuratorFramework one = client(); CuratorFramework two = client()) {
            DistributedAtomicLong a = new DistributedAtomicLong(one, "/curator/long", new RetryNTimes(50, 5));
            DistributedAtomicLong b = new DistributedAtomicLong(two, "/curator/long", new RetryNTimes(50, 5));
            for (int n = 0; n < 10; n++) {
                that(a.increment().succeeded() && b.increment().succeeded(), "increment");
            }
            that(a.get().postValue() == 20, "every increment counted");
            SharedCount x = new SharedCount(one, "/curator/count", 7);
            SharedCount y = new SharedCount(two, "/curator/count", 0);
            x.start();
            y.start();
            that(y.getCount() == 7, "seeded once");
            CountDownLatch changed = new CountDownLatch(1);
            y.addListener(new org.apache.curator.framework.recipes.shared.SharedCountListener() {
                public void countHasChanged(org.apache.curator.framework.recipes.shared.SharedCountReader r, int n) {
                    changed.countDown();
                }

                public void stateChanged(
                        CuratorFramework c, org.apache.curator.framework.state.ConnectionState s) {}
            });
            x.setCount(8);
            that(changed.await(PATIENCE, TimeUnit.SECONDS) && y.getCount() == 8, "told of the change");
        }
    }

    static void leaderLatch() throws Exception {
        CuratorFramework one = client();
        try (CuratorFramework two = client()) {
            LeaderLatch a = new LeaderLatch(one, "/curator/latch", "a");
            LeaderLatch b = new LeaderLatch(two, "/curator/latch", "b");
            a.start();
            that(a.await(PATIENCE, TimeUnit.SECONDS), "first leads");
            b.start();
            that(!b.hasLeadership(), "second waits");
            one.close();
            that(b.await(PATIENCE, TimeUnit.SECONDS), "second leads when the first is gone");
        }
    }

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        Object[][] checks = {
            {"mutex", (Check) CuratorPeer::mutex},
            {"semaphoreMutex", (Check) CuratorPeer::semaphoreMutex},
            {"multiLock", (Check) CuratorPeer::multiLock},
            {"readWriteLock", (Check) CuratorPeer::readWriteLock},
            {"semaphore", (Check) CuratorPeer::semaphore},
            {"counters", (Check) CuratorPeer::counters},
            {"leaderLatch", (Check) CuratorPeer::leaderLatch},
        };
        for (Object[] check : checks) {
            ((Check) check[1]).run();
            System.out.println("ok: " + check[0]);
        }
        System.exit(0);
    }
}
