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
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

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

        void add(long asked, long granted, long released, long ended) {
            if (count == acquire.length) {
                acquire = Arrays.copyOf(acquire, count * 2);
                release = Arrays.copyOf(release, count * 2);
            }
            acquire[count] = granted - asked;
            release[count++] = ended - released;
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

    private void open() throws Exception {
        int sessions = keys.containsKey("s") ? number("s") : 1;
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
            SplittableRandom dice = new SplittableRandom(worker);
            CuratorFramework client = client(worker);
            switch (scenario) {
                case "handoff":
                    laps.add(locking(new InterProcessMutex(client, root + "/handoff"), one, 1, number("hold")));
                    break;
                case "rw":
                    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, root + "/rw");
                    Lap read = locking(lock.readLock(), readers, 1);
                    Lap write = locking(lock.writeLock(), readers, READERS_MAX);
                    int percent = number("readpct");
                    laps.add(kept -> (dice.nextInt(100) < percent ? read : write).go(kept));
                    break;
                case "semaphore":
                    laps.add(leasing(new InterProcessSemaphoreV2(client, root + "/semaphore", number("leases")), permits));
                    break;
                case "many":
                    List<Lap> paths = new ArrayList<>();
                    for (int path = 0; path < rooms.size(); path++) {
                        paths.add(locking(new InterProcessMutex(client, root + "/many/" + path), rooms.get(path), 1));
                    }
                    laps.add(kept -> paths.get(dice.nextInt(paths.size())).go(kept));
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
        long[] release = times.stream().flatMapToLong(each -> Arrays.stream(each.release, 0, each.count)).sorted().toArray();
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
