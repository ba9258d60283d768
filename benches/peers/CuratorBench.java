import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * The scenarios of lockkeeper-bench with Apache Curator: {@code CuratorBench CONNECT SCENARIO key=value...}, all keys given.
 * Prints the same line. See benches/README.md.
 */
public final class CuratorBench {
    private static final int WARMING = 0;
    private static final int MEASURED = 1;
    private static final int OVER = 2;
    private static final long PATIENCE_MILLISECONDS = 60_000;
    private static final long READERS_MAX = 1L << 32;

    private final String connect;
    private final String scenario;
    private final Map<String, String> keys = new HashMap<>();
    private final String root = "/curator-bench/" + ProcessHandle.current().pid();
    private final List<CuratorFramework> clients = new ArrayList<>();
    private final List<Times> times = new ArrayList<>();
    private final AtomicLong violations = new AtomicLong();
    private volatile int phase = WARMING;
    private volatile Throwable failure;

    /** Takes a lock and gives it back, and adds how long that took. */
    private interface Lap {
        void go(Times times) throws Exception;
    }

    /** Times in nanoseconds of one thread. */
    private static final class Times {
        private long[] acquire = new long[1024];
        private long[] release = new long[1024];
        private int count;
        private int releases;

        void add(long asked, long granted, long released, long ended) {
            acquired(asked, granted);
            released(released, ended);
        }

        void acquired(long asked, long granted) {
            if (count == acquire.length) {
                acquire = Arrays.copyOf(acquire, count * 2);
            }
            acquire[count++] = granted - asked;
        }

        void released(long released, long ended) {
            if (releases == release.length) {
                release = Arrays.copyOf(release, releases * 2);
            }
            release[releases++] = ended - released;
        }
    }

    /** What a lock protects: a plain counter that sees broken exclusion and capacity. */
    private final class Room {
        private final long space;
        private final AtomicLong taken = new AtomicLong();

        Room(long space) {
            this.space = space;
        }

        void visit(long needed) {
            if (taken.addAndGet(needed) > space) {
                violations.incrementAndGet();
            }
            taken.addAndGet(-needed);
        }
    }

    private CuratorBench(String[] words) {
        connect = words[0];
        scenario = words[1];
        for (String word : Arrays.asList(words).subList(2, words.length)) {
            String[] pair = word.split("=", 2);
            keys.put(pair[0], pair[1]);
        }
    }

    public static void main(String[] words) throws Exception {
        CuratorBench bench = new CuratorBench(words);
        bench.open();
        String line = bench.run();
        System.out.println(line);
        System.out.flush();
        // Stuck threads are not waited for.
        Runtime.getRuntime().halt(bench.violations.get() == 0 ? 0 : 1);
    }

    private int number(String key) {
        return Integer.parseInt(keys.get(key));
    }

    private int number(String key, int otherwise) {
        return Integer.parseInt(keys.getOrDefault(key, Integer.toString(otherwise)));
    }

    private void open() throws Exception {
        // Those who write what a cache follows have a session of their own, as beside a view of lockkeeper.
        int sessions = keys.containsKey("s") ? number("s") : scenario.equals("view") ? 2 : 1;
        int timeout = keys.containsKey("timeout") ? number("timeout") * 1000 : 30_000;
        for (int index = 0; index < sessions; index++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(
                    connect, timeout, 15_000, new ExponentialBackoffRetry(100, 5));
            client.start();
            clients.add(client);
        }
        for (CuratorFramework client : clients) {
            client.blockUntilConnected();
        }
    }

    private CuratorFramework client(int worker) {
        return clients.get(worker % clients.size());
    }

    private String run() throws Exception {
        switch (scenario) {
            case "uncontended":
                return counted(locking(new InterProcessMutex(client(0), root + "/uncontended"), new Room(1), 1));
            case "multi":
                List<InterProcessLock> members = new ArrayList<>();
                for (int path = 0; path < number("k"); path++) {
                    members.add(new InterProcessMutex(client(0), root + "/multi/" + path));
                }
                return counted(locking(new InterProcessMultiLock(members), new Room(1), 1));
            case "herd":
                return herd();
            case "view":
                return view();
            case "members":
                stay(root + "/members");
                GroupMember observer = new GroupMember(client(0), root + "/members", "observer");
                observer.start();
                return timed(workers());
            case "failover":
                return failover();
            case "lead":
                LeaderLatch latch = new LeaderLatch(client(0), "/curator-bench/" + number("of") + "/failover", "killed");
                latch.start();
                latch.await();
                System.out.println("leading");
                System.out.flush();
                // Until it is killed, or the process that started it has ended.
                System.in.read();
                return "";
            case "expire":
                return expire();
            case "register":
                return register();
            case "lookup":
                return lookup();
            case "queue":
                return new Queue().run();
            default:
                return timed(workers());
        }
    }

    private List<Lap> workers() {
        List<Lap> laps = new ArrayList<>();
        Room one = new Room(1);
        Room readers = new Room(READERS_MAX);
        List<Room> rooms = new ArrayList<>();
        for (int path = 0; scenario.equals("many") && path < number("k"); path++) {
            rooms.add(new Room(1));
        }
        Room permits = new Room(scenario.equals("semaphore") ? number("leases") : 0);
        for (int worker = 0; worker < number("w"); worker++) {
            SplittableRandom rng = new SplittableRandom(worker);
            CuratorFramework client = client(worker);
            switch (scenario) {
                case "handoff":
                    laps.add(locking(new InterProcessMutex(client, root + "/handoff"), one, 1, number("hold")));
                    break;
                case "elect":
                    laps.add(leading(client, root + "/elect", "candidate " + worker, one, number("hold")));
                    break;
                case "rw":
                    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, root + "/rw");
                    Lap read = locking(lock.readLock(), readers, 1);
                    Lap write = locking(lock.writeLock(), readers, READERS_MAX);
                    int percent = number("readpct");
                    laps.add(kept -> (rng.nextInt(100) < percent ? read : write).go(kept));
                    break;
                case "semaphore":
                    laps.add(leasing(new InterProcessSemaphoreV2(client, root + "/semaphore", number("leases")), permits));
                    break;
                case "members":
                    laps.add(joining(client, root + "/members/worker-" + worker));
                    break;
                case "count":
                    laps.add(adding(new DistributedAtomicLong(client, root + "/count", new RetryNTimes(1_000_000, 1))));
                    break;
                case "many":
                    List<Lap> paths = new ArrayList<>();
                    for (int path = 0; path < rooms.size(); path++) {
                        paths.add(locking(new InterProcessMutex(client, root + "/many/" + path), rooms.get(path), 1));
                    }
                    laps.add(kept -> paths.get(rng.nextInt(paths.size())).go(kept));
                    break;
                default:
                    throw new IllegalArgumentException("no scenario " + scenario);
            }
        }
        return laps;
    }

    private static Lap locking(InterProcessLock lock, Room room, long space) {
        return locking(lock, room, space, 0);
    }

    /** Holds it for so many milliseconds. */
    private static Lap locking(InterProcessLock lock, Room room, long space, int hold) {
        return kept -> {
            long asked = System.nanoTime();
            lock.acquire();
            long granted = System.nanoTime();
            room.visit(space);
            if (hold > 0) {
                Thread.sleep(hold);
            }
            long released = System.nanoTime();
            lock.release();
            kept.add(asked, granted, released, System.nanoTime());
        };
    }

    /** Leads for so many milliseconds. A latch that has resigned is closed for ever, so each term takes another one. */
    private static Lap leading(CuratorFramework client, String path, String id, Room room, int hold) {
        return kept -> {
            long asked = System.nanoTime();
            LeaderLatch latch = new LeaderLatch(client, path, id);
            latch.start();
            latch.await();
            long granted = System.nanoTime();
            room.visit(1);
            if (hold > 0) {
                Thread.sleep(hold);
            }
            long released = System.nanoTime();
            latch.close();
            kept.add(asked, granted, released, System.nanoTime());
        };
    }

    /** The members that stay: nodes alone, because each GroupMember would have a copy of all members. */
    private void stay(String path) throws Exception {
        List<PersistentNode> nodes = new ArrayList<>();
        for (int number = 0; number < number("k"); number++) {
            String name = String.format(Locale.ROOT, "%s/%05d", path, number);
            nodes.add(new PersistentNode(client(number), CreateMode.EPHEMERAL, false, name, new byte[0]));
            nodes.get(number).start();
        }
        for (PersistentNode node : nodes) {
            if (!node.waitForInitialCreate(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a member has no node");
            }
        }
    }

    /** What a GroupMember joins by: nobody can wait for the first node of a GroupMember itself. */
    private static Lap joining(CuratorFramework client, String path) {
        byte[] payload = "payload".getBytes(StandardCharsets.UTF_8);
        return kept -> {
            long asked = System.nanoTime();
            PersistentNode member = new PersistentNode(client, CreateMode.EPHEMERAL, false, path, payload);
            member.start();
            if (!member.waitForInitialCreate(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the member has no node");
            }
            long joined = System.nanoTime();
            member.close();
            kept.add(asked, joined, joined, System.nanoTime());
        };
    }

    private static Lap adding(DistributedAtomicLong counter) {
        return kept -> {
            long asked = System.nanoTime();
            if (!counter.increment().succeeded()) {
                throw new IllegalStateException("not added");
            }
            long added = System.nanoTime();
            kept.add(asked, added, added, added);
        };
    }

    private static Lap leasing(InterProcessSemaphoreV2 semaphore, Room room) {
        return kept -> {
            long asked = System.nanoTime();
            Lease lease = semaphore.acquire();
            long granted = System.nanoTime();
            room.visit(1);
            long released = System.nanoTime();
            semaphore.returnLease(lease);
            kept.add(asked, granted, released, System.nanoTime());
        };
    }

    private String counted(Lap lap) throws Exception {
        Times warming = new Times();
        for (int cycle = 0; cycle < number("warmn"); cycle++) {
            lap.go(warming);
        }
        Times kept = new Times();
        times.add(kept);
        Reading earlier = new Reading();
        for (int cycle = 0; cycle < number("n"); cycle++) {
            lap.go(kept);
        }
        return report(earlier, new Reading(), 0);
    }

    private String timed(List<Lap> laps) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (Lap lap : laps) {
            Times kept = new Times();
            times.add(kept);
            threads.add(started(() -> {
                Times unmeasured = new Times();
                while (phase != OVER) {
                    lap.go(unmeasured);
                    if (phase == MEASURED) {
                        int last = unmeasured.count - 1;
                        kept.add(0, unmeasured.acquire[last], 0, unmeasured.release[last]);
                    }
                    unmeasured.count = 0;
                    unmeasured.releases = 0;
                }
                return null;
            }));
        }
        Thread.sleep(number("warm") * 1000L);
        Reading earlier = new Reading();
        phase = MEASURED;
        Thread.sleep(number("t") * 1000L);
        phase = OVER;
        Reading later = new Reading();
        return report(earlier, later, joined(threads));
    }

    private String herd() throws Exception {
        String path = root + "/herd";
        int waiters = number("w");
        Room room = new Room(1);
        InterProcessMutex held = new InterProcessMutex(client(0), path);
        held.acquire();
        long[] opened = new long[1];
        long before = resident();
        long queueing = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (int worker = 0; worker < waiters; worker++) {
            InterProcessMutex mutex = new InterProcessMutex(client(worker), path);
            Times kept = new Times();
            times.add(kept);
            threads.add(started(() -> {
                mutex.acquire();
                long granted = System.nanoTime();
                room.visit(1);
                long released = System.nanoTime();
                mutex.release();
                kept.add(opened[0], granted, released, System.nanoTime());
                return null;
            }));
        }
        while (client(0).getChildren().forPath(path).size() <= waiters) {
            Thread.sleep(20);
        }
        double queued = (System.nanoTime() - queueing) / 1e9;
        long waiting = resident();
        Reading earlier = new Reading();
        opened[0] = System.nanoTime();
        held.release();
        int stuck = joined(threads);
        String line = report(earlier, new Reading(), stuck);
        return line.substring(0, line.length() - 1) + String.format(Locale.ROOT,
                ",\"queue_s\":%.3f,\"rss_before_kb\":%d,\"rss_waiting_kb\":%d}", queued, before, waiting);
    }

    /** Kills leaders, each a process of its own, and times the next one from the kill. */
    private String failover() throws Exception {
        String path = root + "/failover";
        Times kept = new Times();
        times.add(kept);
        Reading earlier = new Reading();
        long slowest = 0;
        for (int kill = 0; kill < number("n"); kill++) {
            Process leader = another("lead");
            try {
                LeaderLatch next = new LeaderLatch(client(0), path, "next");
                // Java 11 has no reader of a process.
                if (leader.getInputStream().read() < 0) {
                    throw new IllegalStateException("the leader has ended");
                }
                next.start();
                while (client(0).getChildren().forPath(path).size() < 2) {
                    Thread.sleep(20);
                }
                long killed = System.nanoTime();
                leader.destroyForcibly().waitFor();
                next.await();
                long granted = System.nanoTime();
                next.close();
                kept.add(killed, granted, granted, System.nanoTime());
                slowest = Math.max(slowest, granted - killed);
            } finally {
                leader.destroyForcibly();
            }
        }
        double limit = number("timeout") + number("tick") / 1e3;
        String line = report(earlier, new Reading(), 0);
        return line.substring(0, line.length() - 1)
                + String.format(Locale.ROOT, ",\"of_limit\":%.3f}", slowest / 1e9 / limit);
    }

    /** A process of this program, with the same session timeout. */
    private Process another(String scenario, String... more) throws IOException {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java"),
                "-Djava.net.preferIPv4Stack=true", "-XX:-UsePerfData",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                "-cp", System.getProperty("java.class.path"), "CuratorBench",
                connect, scenario, "of=" + ProcessHandle.current().pid(), "timeout=" + number("timeout")));
        command.addAll(List.of(more));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    /** Stops a process that has k nodes until its session has ended, and times when they exist again. */
    private String expire() throws Exception {
        String path = root + "/expire";
        int count = number("k");
        Times kept = new Times();
        times.add(kept);
        long packets = 0;
        Reading first = new Reading();
        Process registered = another("register", "k=" + count);
        try {
            InputStream lines = registered.getInputStream();
            registered(lines);
            for (int end = 0; end < number("n"); end++) {
                Set<String> before = nodes(path);
                signal(registered, "-STOP");
                while (!nodes(path).isEmpty()) {
                    Thread.sleep(20);
                }
                Reading earlier = new Reading();
                signal(registered, "-CONT");
                // Behind the program that sends the signal, so that its time does not count.
                long resumed = System.nanoTime();
                registered(lines);
                long back = System.nanoTime();
                // Without the question for the counters.
                packets += new Reading().servers[0] - earlier.servers[0] - connect.split(",").length;
                Set<String> after = nodes(path);
                violations.addAndGet(after.equals(before) && after.size() == count ? 0 : 1);
                kept.add(resumed, back, back, back);
            }
        } finally {
            registered.destroyForcibly();
        }
        String line = report(first, new Reading(), 0);
        return line.substring(0, line.length() - 1) + String.format(Locale.ROOT,
                ",\"reqs_node\":%.2f}", (double) packets / number("n") / count);
    }

    private static void registered(InputStream lines) throws IOException {
        int read;
        while ((read = lines.read()) != '\n') {
            if (read < 0) {
                throw new IllegalStateException("the process has ended");
            }
        }
    }

    private static void signal(Process process, String signal) throws Exception {
        if (new ProcessBuilder("kill", signal, Long.toString(process.pid())).start().waitFor() != 0) {
            throw new IllegalStateException("kill has failed");
        }
    }

    private Set<String> nodes(String path) throws Exception {
        try {
            return new TreeSet<>(client(0).getChildren().forPath(path));
        } catch (KeeperException.NoNodeException none) {
            return new TreeSet<>();
        }
    }

    /** Registers k nodes, and prints a line each time when all of them exist. */
    private String register() throws Exception {
        Set<String> registered = ConcurrentHashMap.newKeySet();
        int count = number("k");
        client(0).getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                registered.clear();
            }
        });
        List<PersistentNode> nodes = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            String name = String.format(Locale.ROOT, "/curator-bench/%d/expire/%05d", number("of"), number);
            PersistentNode node = new PersistentNode(client(0), CreateMode.EPHEMERAL, false, name,
                    "payload".getBytes(StandardCharsets.UTF_8));
            node.getListenable().addListener(path -> {
                if (registered.add(path) && registered.size() == count) {
                    System.out.println("registered");
                    System.out.flush();
                }
            });
            node.start();
            nodes.add(node);
        }
        // Until it is killed, or the process that started it has ended.
        System.in.read();
        return "";
    }

    /** A CuratorCache of k nodes: its first load, and how late the changes of another session are in it. */
    private String view() throws Exception {
        String path = root + "/view";
        int nodes = number("k");
        CuratorFramework client = client(0);
        CuratorFramework follower = client(1);
        for (int first = 0, directory = 0; first < nodes; first += 1000, directory++) {
            client.create().creatingParentsIfNeeded().forPath(path + "/" + directory, new byte[0]);
            List<CuratorOp> creates = new ArrayList<>();
            for (int name = 0; name < Math.min(1000, nodes - first); name++) {
                creates.add(client.transactionOp().create()
                        .forPath(path + "/" + directory + "/" + name, "12345678".getBytes(StandardCharsets.UTF_8)));
            }
            client.transaction().forOperations(creates);
        }
        System.gc();
        long before = resident();
        long begun = System.nanoTime();
        CountDownLatch loaded = new CountDownLatch(1);
        LinkedBlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        CuratorCache cache = CuratorCache.build(follower, path);
        cache.listenable().addListener(CuratorCacheListener.builder()
                .forInitialized(loaded::countDown)
                .forChanges((was, now) -> changed.add(System.nanoTime()))
                .build());
        cache.start();
        loaded.await();
        double load = (System.nanoTime() - begun) / 1e9;
        System.gc();
        long keeping = resident();
        String written = path + "/0/0";
        Lap change = kept -> {
            long asked = System.nanoTime();
            client.setData().forPath(written, "87654321".getBytes(StandardCharsets.UTF_8));
            long answered = System.nanoTime();
            kept.add(asked, changed.take(), asked, answered);
        };
        String line = counted(change);
        long reads = 0;
        long reading = System.nanoTime();
        while (System.nanoTime() - reading < 500_000_000L) {
            for (int read = 0; read < 10_000; read++) {
                reads += cache.get(written).isPresent() ? 1 : 0;
            }
        }
        double readsPerSecond = reads / ((System.nanoTime() - reading) / 1e9);
        return line.substring(0, line.length() - 1) + String.format(Locale.ROOT,
                ",\"nodes\":%d,\"load_s\":%.6f,\"rss_before_kb\":%d,\"rss_keeping_kb\":%d,\"snapshot_reads_s\":%.1f}",
                cache.size(), load, before, keeping, readsPerSecond);
    }

    /** A service of k instances: how late a change is in a client's cache, and how fast its provider chooses. */
    private String lookup() throws Exception {
        CuratorFramework client = client(0);
        ServiceDiscovery<Void> discovery =
                ServiceDiscoveryBuilder.builder(Void.class).client(client).basePath(root + "/services").build();
        discovery.start();
        List<ServiceInstance<Void>> instances = new ArrayList<>();
        for (int number = 0; number < number("k"); number++) {
            ServiceInstance<Void> instance = ServiceInstance.<Void>builder().name("service")
                    .id(String.format(Locale.ROOT, "instance-%06d", number)).address("10.0.0.7").port(8080).build();
            discovery.registerService(instance);
            instances.add(instance);
        }
        ServiceProvider<Void> provider = discovery.serviceProviderBuilder().serviceName("service")
                .providerStrategy(new RoundRobinStrategy<>()).build();
        provider.start();
        ServiceCache<Void> cache = discovery.serviceCacheBuilder().name("service").build();
        LinkedBlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        cache.start();
        while (cache.getInstances().size() < instances.size()
                || provider.getAllInstances().size() < instances.size()) {
            Thread.sleep(10);
        }
        // Behind the first load, which its listeners see as changes.
        cache.addListener(new ServiceCacheListener() {
            @Override
            public void cacheChanged() {
                changed.add(System.nanoTime());
            }

            @Override
            public void stateChanged(CuratorFramework of, ConnectionState state) {}
        });
        Lap change = kept -> {
            long asked = System.nanoTime();
            discovery.updateService(instances.get(0));
            long answered = System.nanoTime();
            kept.add(asked, changed.take(), asked, answered);
        };
        String line = counted(change);
        double one = lookups(provider, 1);
        double several = lookups(provider, number("w"));
        return line.substring(0, line.length() - 1) + String.format(Locale.ROOT,
                ",\"instances\":%d,\"lookups_s\":%.1f,\"lookups_w_s\":%.1f}",
                cache.getInstances().size(), one, several);
    }

    /** The choices in a second, by so many threads. */
    private double lookups(ServiceProvider<Void> provider, int count) throws Exception {
        double[] found = new double[count];
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            int index = number;
            threads.add(started(() -> {
                long chosen = 0;
                long begun = System.nanoTime();
                while (System.nanoTime() - begun < 500_000_000L) {
                    for (int choice = 0; choice < 10_000; choice++) {
                        chosen += provider.getInstance() == null ? 0 : 1;
                    }
                }
                found[index] = chosen / ((System.nanoTime() - begun) / 1e9);
                return null;
            }));
        }
        joined(threads);
        return Arrays.stream(found).sum();
    }

    /** Producers and takers of a DistributedQueue with locks. The end of an item is in the time until the next one. */
    private final class Queue implements QueueSerializer<String> {
        private static final int FILL = 100;

        private final String path = root + "/queue";
        private final int batch = number("batch");
        private final int bytes = number("bytes", 100);
        private final Semaphore room = new Semaphore(number("ahead", 1000));
        private final AtomicLong next = new AtomicLong();
        private final AtomicLong waiting = new AtomicLong();
        private final Set<Long> ended = ConcurrentHashMap.newKeySet();
        private volatile boolean isOver;

        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.US_ASCII);
        }

        String run() throws Exception {
            DistributedQueue<String> first = producer(client(0));
            for (int begin = 0; begin < number("waiting"); begin += FILL) {
                for (int item = 0; item < Math.min(FILL, number("waiting") - begin); item++) {
                    first.put(item());
                    waiting.incrementAndGet();
                }
                flush(first);
            }
            List<Thread> producers = new ArrayList<>();
            for (int number = 0; number < number("p"); number++) {
                Times kept = new Times();
                times.add(kept);
                DistributedQueue<String> queue = producer(client(number));
                producers.add(started(() -> {
                    while (phase != OVER) {
                        if (room.tryAcquire(batch, 100, TimeUnit.MILLISECONDS)) {
                            put(queue, kept);
                        }
                    }
                    return null;
                }));
            }
            for (int number = 0; number < number("w"); number++) {
                Times kept = new Times();
                times.add(kept);
                QueueBuilder.builder(client(number), new Taker(kept), this, path).lockPath(path + "-locks").buildQueue().start();
            }
            Thread.sleep(number("warm") * 1000L);
            Reading earlier = new Reading();
            phase = MEASURED;
            Thread.sleep(number("t") * 1000L);
            phase = OVER;
            Reading later = new Reading();
            int stuck = joined(producers);
            isOver = true;
            long left = left();
            violations.addAndGet(Math.abs(waiting.get() - left));
            String line = report(earlier, later, stuck);
            return line.substring(0, line.length() - 1) + String.format(Locale.ROOT, ",\"left\":%d}", left);
        }

        private DistributedQueue<String> producer(CuratorFramework client) throws Exception {
            DistributedQueue<String> queue = QueueBuilder.<String>builder(client, null, this, path).buildQueue();
            queue.start();
            return queue;
        }

        private String item() {
            return String.format(Locale.ROOT, "%0" + bytes + "d", next.getAndIncrement());
        }

        private void flush(DistributedQueue<String> queue) throws Exception {
            if (!queue.flushPuts(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("puts were not flushed");
            }
        }

        private void put(DistributedQueue<String> queue, Times kept) throws Exception {
            long asked = System.nanoTime();
            if (batch == 1) {
                queue.put(item());
            } else {
                int[] left = {batch};
                MultiItem<String> items = () -> left[0]-- > 0 ? item() : null;
                queue.putMulti(items);
            }
            flush(queue);
            waiting.addAndGet(batch);
            if (phase == MEASURED) {
                kept.released(asked, System.nanoTime());
            }
        }

        /** The items in the queue, when the last takers have deleted what they had; each node has a batch. */
        private long left() throws Exception {
            long end = System.currentTimeMillis() + PATIENCE_MILLISECONDS / 6;
            while (true) {
                long items = 0;
                if (batch == 1) {
                    items = client(0).checkExists().forPath(path).getNumChildren();
                } else {
                    // Those that waited at the beginning have a node each.
                    for (String node : client(0).getChildren().forPath(path)) {
                        try {
                            items += client(0).getData().forPath(path + "/" + node).length / bytes;
                        } catch (KeeperException.NoNodeException ended) {
                            // The next look is without it.
                        }
                    }
                }
                if (items == waiting.get() || System.currentTimeMillis() > end) {
                    return items;
                }
                Thread.sleep(20);
            }
        }

        private final class Taker implements QueueConsumer<String> {
            private final Times kept;
            private long asked = System.nanoTime();

            Taker(Times kept) {
                this.kept = kept;
            }

            @Override
            public void consumeMessage(String item) throws Exception {
                long taken = System.nanoTime();
                if (isOver && batch == 1) {
                    // Keeps the item, so that it is in the queue when that is counted.
                    Thread.sleep(Long.MAX_VALUE);
                }
                if (!ended.add(Long.parseLong(item))) {
                    violations.incrementAndGet();
                }
                waiting.decrementAndGet();
                room.release();
                if (phase == MEASURED) {
                    kept.acquired(asked, taken);
                }
                asked = System.nanoTime();
            }

            @Override
            public void stateChanged(CuratorFramework of, ConnectionState state) {}
        }
    }

    private Thread started(java.util.concurrent.Callable<Void> work) {
        Thread thread = new Thread(() -> {
            try {
                work.call();
            } catch (Throwable thrown) {
                failure = thrown;
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Waits for all threads with patience, and returns how many did not come. */
    private int joined(List<Thread> threads) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MILLISECONDS;
        for (Thread thread : threads) {
            thread.join(Math.max(1, end - System.currentTimeMillis()));
        }
        if (failure != null) {
            throw new Exception(failure);
        }
        return (int) threads.stream().filter(Thread::isAlive).count();
    }

    /** What a load costs: the servers' own counters, and processor time. */
    private final class Reading {
        final long at;
        final long[] servers;
        final long ownCpu;
        final long serversCpu;

        Reading() throws IOException {
            servers = servers();
            var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            ownCpu = system.getProcessCpuTime() / 1000;
            long ticks = 0;
            for (String pid : pids()) {
                String stat = Files.readString(Path.of("/proc", pid, "stat"));
                String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                ticks += Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
            }
            serversCpu = ticks * 10_000;
            at = System.nanoTime();
        }

        private String[] pids() {
            String pids = System.getenv().getOrDefault("LOCKKEEPER_BENCH_SERVER_PIDS", "");
            return pids.isEmpty() ? new String[0] : pids.split(",");
        }

        private long[] servers() throws IOException {
            String[] names = {"zk_packets_received", "zk_cnt_readlatency", "zk_cnt_updatelatency"};
            long[] sums = new long[names.length];
            for (String host : connect.split("/")[0].split(",")) {
                int colon = host.lastIndexOf(':');
                InetSocketAddress address =
                        new InetSocketAddress(host.substring(0, colon), Integer.parseInt(host.substring(colon + 1)));
                try (Socket socket = new Socket()) {
                    socket.connect(address, 5000);
                    OutputStream question = socket.getOutputStream();
                    question.write("mntr".getBytes(StandardCharsets.US_ASCII));
                    question.flush();
                    InputStream answer = socket.getInputStream();
                    for (String line : new String(answer.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                        String[] pair = line.split("\t");
                        int index = Arrays.asList(names).indexOf(pair[0]);
                        if (index >= 0) {
                            sums[index] += Long.parseLong(pair[1].trim());
                        }
                    }
                }
            }
            return sums;
        }
    }

    private static long resident() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        return 0;
    }

    private String report(Reading earlier, Reading later, int stuck) throws IOException {
        long[] acquire = times.stream().flatMapToLong(each -> Arrays.stream(each.acquire, 0, each.count)).sorted().toArray();
        long[] release = times.stream().flatMapToLong(each -> Arrays.stream(each.release, 0, each.releases)).sorted().toArray();
        int ops = acquire.length;
        double elapsed = (later.at - earlier.at) / 1e9;
        int questions = connect.split("/")[0].split(",").length;
        StringBuilder params = new StringBuilder();
        keys.forEach((key, value) -> params.append(params.length() == 0 ? "" : ",")
                .append('"').append(key).append("\":").append(value.matches("\\d+") ? value : '"' + value + '"'));
        return String.format(Locale.ROOT, "{\"peer\":\"curator\",\"scenario\":\"%s\",\"params\":{%s},\"ops\":%d,\"elapsed_s\":%.3f,"
                + "\"ops_s\":%.1f,\"acq_p50_us\":%.1f,\"acq_p99_us\":%.1f,\"rel_p50_us\":%.1f,\"rel_p99_us\":%.1f,"
                + "\"reqs_op\":%.3f,\"reads_op\":%.3f,\"writes_op\":%.3f,\"cli_cpu_us_op\":%.1f,\"srv_cpu_us_op\":%.1f,"
                + "\"rss_kb\":%d,\"violations\":%d,\"stuck_workers\":%d}",
                scenario, params, ops, elapsed, ops / elapsed, at(acquire, 0.5), at(acquire, 0.99), at(release, 0.5), at(release, 0.99),
                (double) (later.servers[0] - earlier.servers[0] - questions) / ops,
                (double) (later.servers[1] - earlier.servers[1]) / ops,
                (double) (later.servers[2] - earlier.servers[2]) / ops,
                (double) (later.ownCpu - earlier.ownCpu) / ops, (double) (later.serversCpu - earlier.serversCpu) / ops,
                resident(), violations.get(), stuck);
    }

    private static double at(long[] sorted, double quantile) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, Math.ceil(quantile * sorted.length) - 1)] / 1e3;
    }
}
