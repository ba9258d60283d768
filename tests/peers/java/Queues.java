import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;

/** Curator's queues, for a {@link CuratorPeer}. */
final class Queues {
    private static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    private static final int STEPS = 20;

    private final CuratorFramework client;
    private final Map<String, Closeable> working = new ConcurrentHashMap<>();

    Queues(CuratorFramework client) {
        this.client = client;
    }

    /** Puts one item, or several in one node. The detail is a priority, a time or an id. */
    String offer(String path, String kind, String detail, String values) throws Exception {
        String[] all = values.split(",");
        QueueBuilder<String> builder = QueueBuilder.builder(client, null, TEXT, path).putInBackground(false);
        switch (kind) {
            case "priority":
                try (DistributedPriorityQueue<String> queue = builder.buildPriorityQueue(0)) {
                    queue.start();
                    queue.putMulti(items(all), Integer.parseInt(detail));
                }
                return "";
            case "delay":
                try (DistributedDelayQueue<String> queue = builder.buildDelayQueue()) {
                    queue.start();
                    queue.putMulti(items(all), Long.parseLong(detail));
                }
                return "";
            case "id":
                try (DistributedIdQueue<String> queue = builder.buildIdQueue()) {
                    queue.start();
                    queue.put(all[0], detail);
                }
                return "";
            default:
                try (DistributedQueue<String> queue = builder.buildQueue()) {
                    queue.start();
                    queue.putMulti(items(all));
                }
                return "";
        }
    }

    private static MultiItem<String> items(String[] values) {
        Iterator<String> left = Arrays.asList(values).iterator();
        return () -> left.hasNext() ? left.next() : null;
    }

    /** Takes items from now on. Each is a node: RECEIPTS/VALUE- with a sequence number. */
    String workOff(String path, String kind, String lockPath, String receipts) throws Exception {
        QueueConsumer<String> consumer = new QueueConsumer<String>() {
            @Override
            public void consumeMessage(String value) throws Exception {
                work();
                String receipt = receipts + "/" + value + "-";
                client.create().creatingParentsIfNeeded().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath(receipt);
                work();
            }

            @Override
            public void stateChanged(CuratorFramework framework, ConnectionState state) {
            }
        };
        QueueBuilder<String> builder = QueueBuilder.builder(client, consumer, TEXT, path);
        if (!lockPath.equals("-")) {
            builder.lockPath(lockPath);
        }
        working.put(path, start(builder, kind));
        return "";
    }

    /** Some requests, during which the process may be killed. */
    private void work() throws Exception {
        for (int step = 0; step < STEPS; step++) {
            client.checkExists().forPath("/");
        }
    }

    private static Closeable start(QueueBuilder<String> builder, String kind) throws Exception {
        switch (kind) {
            case "priority":
                DistributedPriorityQueue<String> byPriority = builder.buildPriorityQueue(0);
                byPriority.start();
                return byPriority;
            case "delay":
                DistributedDelayQueue<String> byTime = builder.buildDelayQueue();
                byTime.start();
                return byTime;
            case "id":
                DistributedIdQueue<String> byId = builder.buildIdQueue();
                byId.start();
                return byId;
            default:
                DistributedQueue<String> queue = builder.buildQueue();
                queue.start();
                return queue;
        }
    }

    /** Takes no more items. */
    String rest(String path) throws Exception {
        working.remove(path).close();
        return "";
    }
}
