import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;

/** The caches of a {@link CuratorPeer}: a CuratorCache for each path, and writes of the nodes that they show. */
final class Caches {
    private static final int LOAD_SECONDS = 30;

    private final CuratorFramework client;
    private final Map<String, CuratorCache> caches = new ConcurrentHashMap<>();

    Caches(CuratorFramework client) {
        this.client = client;
    }

    /** Starts a cache of a tree, and waits until it says that it is complete. */
    String cache(String path) throws Exception {
        CuratorCache cache = CuratorCache.build(client, path);
        CountDownLatch loaded = new CountDownLatch(1);
        cache.listenable().addListener(
                CuratorCacheListener.builder().forInitialized(loaded::countDown).build());
        caches.put(path, cache);
        cache.start();
        if (!loaded.await(LOAD_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the cache is not loaded");
        }
        return "";
    }

    /** The nodes of a cache: each its path, '=' and its data, separated by spaces. */
    String cached(String path) {
        return caches.get(path).stream()
                .map(node -> node.getPath() + "=" + new String(node.getData(), StandardCharsets.UTF_8))
                .collect(Collectors.joining(" "));
    }

    /** Writes a node, and creates it and its parents if they are missing. */
    String put(String path, String data) throws Exception {
        client.create().orSetData().creatingParentsIfNeeded().forPath(path, data.getBytes(StandardCharsets.UTF_8));
        return "";
    }

    /** Deletes a node and everything below it. */
    String remove(String path) throws Exception {
        client.delete().deletingChildrenIfNeeded().forPath(path);
        return "";
    }
}
