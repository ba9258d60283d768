import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** The candidates of a {@link CuratorPeer}: each a LeaderLatch, or a LeaderSelector, made for one term. */
final class Elections {
    /** A selector whose leadership lasts until this object is told to end it. */
    private static final class Term extends LeaderSelectorListenerAdapter {
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch ended = new CountDownLatch(1);
        final ExecutorService thread = Executors.newSingleThreadExecutor(work -> {
            Thread made = new Thread(work);
            made.setDaemon(true);
            return made;
        });
        final LeaderSelector selector;

        Term(CuratorFramework client, String id, String path) {
            selector = new LeaderSelector(client, path, thread, this);
            selector.setId(id);
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws Exception {
            begun.countDown();
            ended.await();
        }
    }

    private final CuratorFramework client;
    private final Map<String, LeaderLatch> latches = new ConcurrentHashMap<>();
    private final Map<String, Term> terms = new ConcurrentHashMap<>();

    Elections(CuratorFramework client) {
        this.client = client;
    }

    /** Starts a latch, and waits until it leads. Answers "CZXID NODE", or nothing when the time was up. */
    String latch(String id, String path, long milliseconds) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        latches.put(id + " " + path, latch);
        latch.start();
        if (milliseconds < 0) {
            latch.await();
        } else if (!latch.await(milliseconds, TimeUnit.MILLISECONDS)) {
            return unlatch(id, path);
        }
        return named(latch.getOurPath());
    }

    String unlatch(String id, String path) throws Exception {
        latches.remove(id + " " + path).close();
        return "";
    }

    /** Starts a selector, and waits until it leads. Answers as a latch. */
    String select(String id, String path, long milliseconds) throws Exception {
        Term term = new Term(client, id, path);
        terms.put(id + " " + path, term);
        term.selector.start();
        if (milliseconds < 0) {
            term.begun.await();
        } else if (!term.begun.await(milliseconds, TimeUnit.MILLISECONDS)) {
            terms.remove(id + " " + path);
            term.selector.close();
            return "";
        }
        // A selector does not name its node: as the leader, it is the first one.
        return named(new InterProcessMutex(client, path).getParticipantNodes().iterator().next());
    }

    String unselect(String id, String path) throws Exception {
        Term term = terms.remove(id + " " + path);
        term.ended.countDown();
        // The selector releases its mutex behind the listener, on this thread.
        term.thread.shutdown();
        term.thread.awaitTermination(30, TimeUnit.SECONDS);
        term.selector.close();
        return "";
    }

    /** The ids of the participants as Curator tells them, in its order. The leader has an asterisk. */
    String ofLatch(String path) throws Exception {
        return shown(new LeaderLatch(client, path).getParticipants());
    }

    /** The same of a selector. */
    String ofSelector(String path) throws Exception {
        return shown(new LeaderSelector(client, path, new Term(client, "", path)).getParticipants());
    }

    private static String shown(Collection<Participant> participants) {
        return participants.stream()
                .map(participant -> participant.getId() + (participant.isLeader() ? "*" : ""))
                .collect(Collectors.joining(" "));
    }

    private String named(String node) throws Exception {
        return client.checkExists().forPath(node).getCzxid() + " " + node;
    }
}
