import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryNTimes;

/** Curator's counters, shared values and barriers, for a {@link CuratorPeer}. */
final class Values {
    /** Tries without end: a test that does not get there says so by its own time limit. */
    private static final RetryNTimes ALWAYS = new RetryNTimes(Integer.MAX_VALUE, 1);

    private final CuratorFramework client;
    private final Map<String, DistributedDoubleBarrier> doubles = new ConcurrentHashMap<>();
    private final Map<String, SharedCount> counts = new HashMap<>();
    private final Map<String, SharedValue> texts = new HashMap<>();

    Values(CuratorFramework client) {
        this.client = client;
    }

    /** Adds to a DistributedAtomicLong, that many times the number. Answers the last sum. */
    String addLong(String path, long number, int times) throws Exception {
        DistributedAtomicLong counter = new DistributedAtomicLong(client, path, ALWAYS);
        long sum = counter.get().postValue();
        for (int time = 0; time < times; time++) {
            AtomicValue<Long> added = counter.add(number);
            if (!added.succeeded()) {
                throw new IllegalStateException("not added");
            }
            sum = added.postValue();
        }
        return Long.toString(sum);
    }

    /** The same of a DistributedAtomicInteger. */
    String addInteger(String path, int number, int times) throws Exception {
        DistributedAtomicInteger counter = new DistributedAtomicInteger(client, path, ALWAYS);
        int sum = counter.get().postValue();
        for (int time = 0; time < times; time++) {
            AtomicValue<Integer> added = counter.add(number);
            if (!added.succeeded()) {
                throw new IllegalStateException("not added");
            }
            sum = added.postValue();
        }
        return Integer.toString(sum);
    }

    /** Reads a SharedCount, and sets it if a number is given. Answers what it was. */
    String sharedCount(String path, String number) throws Exception {
        SharedCount count = new SharedCount(client, path, 0);
        count.start();
        try {
            int before = count.getCount();
            if (!number.isEmpty() && !count.trySetCount(count.getVersionedValue(), Integer.parseInt(number))) {
                throw new IllegalStateException("not set");
            }
            return Integer.toString(before);
        } finally {
            count.close();
        }
    }

    /** The same of a SharedValue with text. */
    String sharedValue(String path, String text) throws Exception {
        SharedValue value = new SharedValue(client, path, new byte[0]);
        value.start();
        try {
            String before = new String(value.getValue(), StandardCharsets.UTF_8);
            if (!text.isEmpty()
                    && !value.trySetValue(value.getVersionedValue(), text.getBytes(StandardCharsets.UTF_8))) {
                throw new IllegalStateException("not set");
            }
            return before;
        } finally {
            value.close();
        }
    }

    /** A SharedCount that stays open. */
    synchronized SharedCount count(String path) throws Exception {
        SharedCount count = counts.get(path);
        if (count == null) {
            count = new SharedCount(client, path, 0);
            count.start();
            counts.put(path, count);
        }
        return count;
    }

    /** A SharedValue that stays open. */
    synchronized SharedValue text(String path) throws Exception {
        SharedValue text = texts.get(path);
        if (text == null) {
            text = new SharedValue(client, path, new byte[0]);
            text.start();
            texts.put(path, text);
        }
        return text;
    }

    /** Adds one to a SharedCount, in one try. Answers what it was, and whether the try succeeded. */
    String tryCount(String path) throws Exception {
        SharedCount count = count(path);
        VersionedValue<Integer> before = count.getVersionedValue();
        return before.getValue() + " " + count.trySetCount(before, before.getValue() + 1);
    }

    /** Appends to a SharedValue, in one try. Answers as {@link #tryCount}. */
    String tryValue(String path, String text) throws Exception {
        SharedValue value = text(path);
        VersionedValue<byte[]> before = value.getVersionedValue();
        String was = new String(before.getValue(), StandardCharsets.UTF_8);
        return was + " " + value.trySetValue(before, (was + text).getBytes(StandardCharsets.UTF_8));
    }

    String barrier(String path, String what) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(client, path);
        switch (what) {
            case "set":
                barrier.setBarrier();
                return "";
            case "remove":
                barrier.removeBarrier();
                return "";
            default:
                return barrier.waitOnBarrier(Long.parseLong(what), TimeUnit.MILLISECONDS) ? "free" : "";
        }
    }

    /** Enters a double barrier. Answers "in", or nothing when the time was up. */
    String join(String thread, String path, int count, long milliseconds) throws Exception {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, count);
        doubles.put(thread + " " + path, barrier);
        return barrier.enter(milliseconds, TimeUnit.MILLISECONDS) ? "in" : "";
    }

    String quit(String thread, String path, long milliseconds) throws Exception {
        return doubles.remove(thread + " " + path).leave(milliseconds, TimeUnit.MILLISECONDS) ? "out" : "";
    }
}
