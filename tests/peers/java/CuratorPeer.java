import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A Java service that acquires Curator's own locks, driven line by line by a test in another language.
 *
 * <p>Started with the connect string and the session timeout in milliseconds. Says {@code ready <session, hex>}
 * once it is connected. Every line it reads is {@code <tag> <verb> <argument>...}, separated by single spaces:
 *
 * <pre>
 * acquire THREAD PATH MILLISECONDS   answers "CZXID NODE", or nothing when the time was up; negative: none
 * release THREAD PATH                answers nothing
 * read THREAD PATH MILLISECONDS      as acquire, the reading side of a read/write lock
 * unread THREAD PATH                 as release
 * write THREAD PATH MILLISECONDS     as acquire, its writing side
 * unwrite THREAD PATH                as release
 * participants PATH                  the contenders' nodes in Curator's order
 * data NODE                          what the node says, read as UTF-8
 * permits THREAD PATH LIMIT COUNT MILLISECONDS
 *                                    answers the names of the leases, or nothing when the time was up; LIMIT is a
 *                                    number, or the path of a SharedCount
 * return THREAD PATH COUNT           answers nothing
 * enter THREAD PATH MILLISECONDS     an InterProcessSemaphoreMutex: answers "in", or nothing when the time was up
 * leave THREAD PATH                  answers nothing
 * count THREAD PATH NUMBER           sets a SharedCount: answers nothing
 * together THREAD PATH,... MILLISECONDS
 *                                    an InterProcessMultiLock, its paths in this order: as enter
 * apart THREAD PATH,...              answers nothing
 * revocable THREAD PATH              makes the mutex revocable, before it is acquired: THREAD releases it when asked.
 *                                    Answers nothing
 * revoke THREAD NODE                 Revoker.attemptRevoke: answers nothing
 * latch THREAD PATH MILLISECONDS     as acquire, a LeaderLatch with the id THREAD; given back by unlatch
 * select THREAD PATH MILLISECONDS    as acquire, a LeaderSelector with the id THREAD; given back by unselect
 * latched THREAD PATH                the ids of the participants, the leader's with an asterisk; of a LeaderLatch
 * selected THREAD PATH               the same of a LeaderSelector
 * cache THREAD PATH                  starts a CuratorCache of a tree, and answers nothing when it says that it is
 *                                    complete
 * cached THREAD PATH                 its nodes: PATH=DATA, in any order
 * put THREAD PATH DATA               writes a node, and creates what is missing: answers nothing
 * remove THREAD PATH                 deletes a node and everything below: answers nothing
 * join THREAD PATH DATA              starts a GroupMember with the id THREAD: answers nothing
 * members THREAD PATH                the members that it sees: ID=DATA, in any order
 * part THREAD PATH                   ends it: answers nothing
 * announce THREAD PATH SERVICE PORT ZONE
 *                                    registers an instance with the id THREAD in a ServiceDiscovery, with a payload
 *                                    unless ZONE is null: answers nothing
 * withdraw THREAD PATH               ends it: answers nothing
 * lookup THREAD PATH SERVICE         the instances: ID=PORT,ENABLED,PAYLOAD,URI, sorted
 * provide THREAD PATH SERVICE CALLS  the ids that a ServiceProvider gives in so many calls, sorted
 * rewrite THREAD NODE COMPATIBLE     what the serializer writes of what it reads from NODE
 * addlong THREAD PATH NUMBER TIMES   a DistributedAtomicLong: answers the last sum
 * addint THREAD PATH NUMBER TIMES    the same of a DistributedAtomicInteger
 * shared THREAD PATH [NUMBER]        a SharedCount: answers the number, and sets it if one is given
 * value THREAD PATH [TEXT]           the same of a SharedValue
 * trycount THREAD PATH               adds one to a SharedCount that stays open, in one try: answers what it was, and
 *                                    true or false
 * tryvalue THREAD PATH TEXT          the same of a SharedValue: appends the text
 * counted THREAD PATH                what that SharedCount shows
 * valued THREAD PATH                 what that SharedValue shows
 * barrier THREAD PATH set|remove|MS  a DistributedBarrier; a wait answers "free", or nothing when the time was up
 * meet THREAD PATH COUNT MS          enters a DistributedDoubleBarrier: answers "in", or nothing when the time was up
 * quit THREAD PATH MS                leaves it: answers "out", or nothing when the time was up
 * offer THREAD PATH KIND LOCKS DETAIL VALUE,...
 *                                    puts items into a queue, those of one request into one node; KIND is plain,
 *                                    priority, delay or id, and DETAIL is the priority, the time or the id
 * workoff THREAD PATH KIND LOCKS RECEIPTS
 *                                    takes items from now on, without a lock path if LOCKS is a dash; each is a
 *                                    node RECEIPTS/VALUE- with a sequence number. Answers nothing
 * rest THREAD PATH                   takes no more: answers nothing
 * exit                               closes the session, answers, and ends
 * </pre>
 *
 * <p>It answers {@code <tag> ok <answer>} or {@code <tag> failed <why>}, in the order in which things get done.
 * Curator's locks belong to threads, so each THREAD named is one; all of them use one lock object for each path, as
 * the beans of a service would. The end of its input is the end of whoever started it: it ends at once, and its
 * session is left to expire.
 */
public final class CuratorPeer {
    private static final int CONNECT_SECONDS = 30;

    /** Tells the node of the present thread's hold, which Curator 5.4 keeps to itself. */
    private static final class Mutex extends InterProcessMutex implements Side {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        @Override
        public String node() {
            return getLockPath();
        }
    }

    /** What can be acquired and tells its node. */
    private interface Side {
        void acquire() throws Exception;

        boolean acquire(long time, TimeUnit unit) throws Exception;

        void release() throws Exception;

        String node();
    }

    /** The same for the sides of a read/write lock. */
    private static final class Write extends InterProcessReadWriteLock.WriteLock implements Side {
        Write(CuratorFramework client, String path) {
            super(client, path, null);
        }

        @Override
        public String node() {
            return getLockPath();
        }
    }

    private static final class Read extends InterProcessReadWriteLock.ReadLock implements Side {
        Read(CuratorFramework client, String path, Write write) {
            super(client, path, null, write);
        }

        @Override
        public String node() {
            return getLockPath();
        }
    }

    private static final class Both extends InterProcessReadWriteLock {
        final Write write;
        final Read read;

        Both(Write write, Read read) {
            super(write, read);
            this.write = write;
            this.read = read;
        }
    }

    /** Classes that are there only with their jar. */
    interface Asked {
        String ask(String[] words) throws Exception;
    }

    /** Something a worker does, and what there is to answer. */
    private interface Work {
        String run() throws Exception;
    }

    private final CuratorFramework client;
    private final PrintStream answers;
    private final Elections elections;
    private final Caches caches;
    private final Members members;
    private final Queues queues;
    private final Values values;
    private final Map<String, Mutex> mutexes = new ConcurrentHashMap<>();
    private final Map<String, Both> both = new ConcurrentHashMap<>();
    private final Map<String, Executor> threads = new ConcurrentHashMap<>();

    private CuratorPeer(CuratorFramework client, PrintStream answers) {
        this.client = client;
        this.answers = answers;
        this.elections = new Elections(client);
        this.caches = new Caches(client);
        this.members = new Members(client);
        this.queues = new Queues(client);
        this.values = new Values(client);
    }

    public static void main(String[] arguments) throws IOException {
        // Whatever else prints must not get between the answers.
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(arguments[0])
                .sessionTimeoutMs(Integer.parseInt(arguments[1]))
                .connectionTimeoutMs(CONNECT_SECONDS * 1000)
                .retryPolicy(new ExponentialBackoffRetry(50, 10))
                // A test may have put proxies before the servers: stay with the addresses given.
                .ensembleTracker(false)
                .build();
        client.start();
        CuratorPeer peer = new CuratorPeer(client, answers);
        // Not by this thread, which must see the end of the input whatever the servers do.
        Executors.newSingleThreadExecutor(CuratorPeer::thread).execute(peer::greet);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            peer.obey(line.split(" "));
        }
        Runtime.getRuntime().halt(0);
    }

    private void greet() {
        try {
            if (client.blockUntilConnected(CONNECT_SECONDS, TimeUnit.SECONDS)) {
                long session = client.getZookeeperClient().getZooKeeper().getSessionId();
                answers.println("ready " + Long.toHexString(session));
                return;
            }
            System.err.println("not connected after " + CONNECT_SECONDS + " s");
        } catch (Exception error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }

    private void obey(String[] words) {
        String tag = words[0];
        switch (words[1]) {
            case "acquire":
                on(words[2], tag, () -> acquire(mutex(words[3]), Long.parseLong(words[4])));
                break;
            case "release":
                on(words[2], tag, () -> release(mutex(words[3])));
                break;
            case "read":
                on(words[2], tag, () -> acquire(both(words[3]).read, Long.parseLong(words[4])));
                break;
            case "unread":
                on(words[2], tag, () -> release(both(words[3]).read));
                break;
            case "write":
                on(words[2], tag, () -> acquire(both(words[3]).write, Long.parseLong(words[4])));
                break;
            case "unwrite":
                on(words[2], tag, () -> release(both(words[3]).write));
                break;
            case "participants":
                on("reader", tag, () -> String.join(" ", mutex(words[2]).getParticipantNodes()));
                break;
            case "data":
                on("reader", tag, () -> new String(client.getData().forPath(words[2]), StandardCharsets.UTF_8));
                break;
            case "permits":
                on(words[2], tag, () -> permits(words[3], words[4], Integer.parseInt(words[5]), words[6]));
                break;
            case "return":
                on(words[2], tag, () -> giveBack(words[3], Integer.parseInt(words[4])));
                break;
            case "enter":
                on(words[2], tag, () -> enter(words[3], Long.parseLong(words[4])));
                break;
            case "leave":
                on(words[2], tag, () -> leave(words[3]));
                break;
            case "count":
                on(words[2], tag, () -> setCount(words[3], Integer.parseInt(words[4])));
                break;
            case "together":
                on(words[2], tag, () -> together(words[3], Long.parseLong(words[4])));
                break;
            case "apart":
                on(words[2], tag, () -> apart(words[3]));
                break;
            case "revocable":
                on(words[2], tag, () -> makeRevocable(words[2], words[3]));
                break;
            case "revoke":
                on(words[2], tag, () -> revoke(words[3]));
                break;
            case "latch":
                on(words[2], tag, () -> elections.latch(words[2], words[3], Long.parseLong(words[4])));
                break;
            case "unlatch":
                on(words[2], tag, () -> elections.unlatch(words[2], words[3]));
                break;
            case "select":
                on(words[2], tag, () -> elections.select(words[2], words[3], Long.parseLong(words[4])));
                break;
            case "unselect":
                on(words[2], tag, () -> elections.unselect(words[2], words[3]));
                break;
            case "latched":
                on(words[2], tag, () -> elections.ofLatch(words[3]));
                break;
            case "selected":
                on(words[2], tag, () -> elections.ofSelector(words[3]));
                break;
            case "cache":
                on(words[2], tag, () -> caches.cache(words[3]));
                break;
            case "cached":
                on(words[2], tag, () -> caches.cached(words[3]));
                break;
            case "put":
                on(words[2], tag, () -> caches.put(words[3], words[4]));
                break;
            case "remove":
                on(words[2], tag, () -> caches.remove(words[3]));
                break;
            case "join":
                on(words[2], tag, () -> members.join(words[2], words[3], words[4]));
                break;
            case "members":
                on(words[2], tag, () -> members.members(words[2], words[3]));
                break;
            case "part":
                on(words[2], tag, () -> members.part(words[2], words[3]));
                break;
            case "register":
                on(words[2], tag, () -> members.register(words[2], words[3], words[4]));
                break;
            case "unregister":
                on(words[2], tag, () -> members.unregister(words[2], words[3]));
                break;
            case "addlong":
                on(words[2], tag, () -> values.addLong(words[3], Long.parseLong(words[4]), Integer.parseInt(words[5])));
                break;
            case "addint":
                on(words[2], tag, () ->
                        values.addInteger(words[3], Integer.parseInt(words[4]), Integer.parseInt(words[5])));
                break;
            case "shared":
                on(words[2], tag, () -> values.sharedCount(words[3], words.length > 4 ? words[4] : ""));
                break;
            case "value":
                on(words[2], tag, () -> values.sharedValue(words[3], words.length > 4 ? words[4] : ""));
                break;
            case "trycount":
                on(words[2], tag, () -> values.tryCount(words[3]));
                break;
            case "tryvalue":
                on(words[2], tag, () -> values.tryValue(words[3], words[4]));
                break;
            case "counted":
                on(words[2], tag, () -> Integer.toString(values.count(words[3]).getCount()));
                break;
            case "valued":
                on(words[2], tag, () -> new String(values.text(words[3]).getValue(), StandardCharsets.UTF_8));
                break;
            case "barrier":
                on(words[2], tag, () -> values.barrier(words[3], words[4]));
                break;
            case "meet":
                on(words[2], tag, () ->
                        values.join(words[2], words[3], Integer.parseInt(words[4]), Long.parseLong(words[5])));
                break;
            case "quit":
                on(words[2], tag, () -> values.quit(words[2], words[3], Long.parseLong(words[4])));
                break;
            case "offer":
                on(words[2], tag, () -> queues.offer(words[3], words[4], words[6], words[7]));
                break;
            case "workoff":
                on(words[2], tag, () -> queues.workOff(words[3], words[4], words[5], words[6]));
                break;
            case "rest":
                on(words[2], tag, () -> queues.rest(words[3]));
                break;
            case "announce":
            case "withdraw":
            case "lookup":
            case "provide":
            case "rewrite":
                on(words[2], tag, () -> services().ask(words));
                break;
            case "exit":
                client.close();
                answers.println(tag + " ok ");
                Runtime.getRuntime().halt(0);
                break;
            default:
                answers.println(tag + " failed no such verb: " + Arrays.toString(words));
        }
    }

    private Asked services;

    private synchronized Asked services() throws ReflectiveOperationException {
        if (services == null) {
            services = (Asked) Class.forName("Services")
                    .getDeclaredConstructor(CuratorFramework.class).newInstance(client);
        }
        return services;
    }

    private String acquire(Side side, long milliseconds) throws Exception {
        boolean acquired = true;
        if (milliseconds < 0) {
            side.acquire();
        } else {
            acquired = side.acquire(milliseconds, TimeUnit.MILLISECONDS);
        }
        return acquired ? client.checkExists().forPath(side.node()).getCzxid() + " " + side.node() : "";
    }

    private static String release(Side side) throws Exception {
        side.release();
        return "";
    }

    private Mutex mutex(String path) {
        return mutexes.computeIfAbsent(path, key -> new Mutex(client, key));
    }

    private Both both(String path) {
        return both.computeIfAbsent(path, key -> {
            Write write = new Write(client, key);
            return new Both(write, new Read(client, key, write));
        });
    }

    private final Map<String, InterProcessSemaphoreV2> semaphores = new ConcurrentHashMap<>();
    private final Map<String, Queue<Lease>> leases = new ConcurrentHashMap<>();
    private final Map<String, InterProcessSemaphoreMutex> semaphoreMutexes = new ConcurrentHashMap<>();
    private final Map<String, SharedCount> counts = new ConcurrentHashMap<>();

    private String permits(String path, String limit, int count, String milliseconds) throws Exception {
        SharedCount shared = limit.startsWith("/") ? count(limit) : null;
        InterProcessSemaphoreV2 semaphore = semaphores.computeIfAbsent(path, key -> shared == null
                ? new InterProcessSemaphoreV2(client, key, Integer.parseInt(limit))
                : new InterProcessSemaphoreV2(client, key, shared));
        long time = Long.parseLong(milliseconds);
        Collection<Lease> got =
                time < 0 ? semaphore.acquire(count) : semaphore.acquire(count, time, TimeUnit.MILLISECONDS);
        if (got == null) {
            return "";
        }
        Queue<Lease> kept = leases.computeIfAbsent(path, key -> new ArrayDeque<>());
        synchronized (kept) {
            kept.addAll(got);
        }
        return got.stream().map(Lease::getNodeName).collect(Collectors.joining(" "));
    }

    private String giveBack(String path, int count) {
        Queue<Lease> kept = leases.get(path);
        for (int number = 0; number < count; number++) {
            synchronized (kept) {
                semaphores.get(path).returnLease(kept.remove());
            }
        }
        return "";
    }

    private String enter(String path, long milliseconds) throws Exception {
        InterProcessSemaphoreMutex mutex =
                semaphoreMutexes.computeIfAbsent(path, key -> new InterProcessSemaphoreMutex(client, key));
        if (milliseconds < 0) {
            mutex.acquire();
            return "in";
        }
        return mutex.acquire(milliseconds, TimeUnit.MILLISECONDS) ? "in" : "";
    }

    private String leave(String path) throws Exception {
        semaphoreMutexes.get(path).release();
        return "";
    }

    private String setCount(String path, int number) throws Exception {
        count(path).setCount(number);
        return "";
    }

    private SharedCount count(String path) throws Exception {
        SharedCount made = new SharedCount(client, path, 0);
        SharedCount count = counts.putIfAbsent(path, made);
        if (count == null) {
            made.start();
            return made;
        }
        return count;
    }

    private final Map<String, InterProcessMultiLock> multiLocks = new ConcurrentHashMap<>();

    private String together(String paths, long milliseconds) throws Exception {
        InterProcessMultiLock multi = multiLocks.computeIfAbsent(
                paths, key -> new InterProcessMultiLock(client, Arrays.asList(key.split(","))));
        if (milliseconds < 0) {
            multi.acquire();
            return "in";
        }
        return multi.acquire(milliseconds, TimeUnit.MILLISECONDS) ? "in" : "";
    }

    private String apart(String paths) throws Exception {
        multiLocks.get(paths).release();
        return "";
    }

    private String makeRevocable(String thread, String path) {
        // Told by ZooKeeper's own thread; the lock belongs to another.
        mutex(path).makeRevocable(lock -> on(thread, "-", () -> {
            lock.release();
            return "";
        }));
        return "";
    }

    private String revoke(String node) throws Exception {
        Revoker.attemptRevoke(client, node);
        return "";
    }

    private void on(String name, String tag, Work work) {
        Executor thread =
                threads.computeIfAbsent(name, key -> Executors.newSingleThreadExecutor(CuratorPeer::thread));
        thread.execute(() -> {
            String answer;
            try {
                answer = tag + " ok " + work.run();
            } catch (Exception error) {
                answer = tag + " failed " + error;
            }
            answers.println(answer.replace('\n', ' '));
        });
    }

    private static Thread thread(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }
}
