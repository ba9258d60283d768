import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A Java service that takes Curator's own locks, told what to do line by line by a test in another language.
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

    /** Something a worker does, and what there is to answer. */
    private interface Work {
        String run() throws Exception;
    }

    private final CuratorFramework client;
    private final PrintStream answers;
    private final Map<String, Mutex> mutexes = new ConcurrentHashMap<>();
    private final Map<String, Both> both = new ConcurrentHashMap<>();
    private final Map<String, Executor> threads = new ConcurrentHashMap<>();

    private CuratorPeer(CuratorFramework client, PrintStream answers) {
        this.client = client;
        this.answers = answers;
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
            case "exit":
                client.close();
                answers.println(tag + " ok ");
                Runtime.getRuntime().halt(0);
                break;
            default:
                answers.println(tag + " failed no such verb: " + Arrays.toString(words));
        }
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
