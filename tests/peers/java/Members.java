import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;

/** The group members and the persistent nodes of a {@link CuratorPeer}: one for each id and path. */
final class Members {
    private final CuratorFramework client;
    private final Map<String, GroupMember> members = new ConcurrentHashMap<>();
    private final Map<String, PersistentNode> nodes = new ConcurrentHashMap<>();

    Members(CuratorFramework client) {
        this.client = client;
    }

    /** Starts a member. Its node is made in the background. */
    String join(String id, String path, String payload) {
        GroupMember member = new GroupMember(client, path, id, payload.getBytes(StandardCharsets.UTF_8));
        members.put(id + " " + path, member);
        member.start();
        return "";
    }

    /** The members that this one sees: each its id, '=' and its payload, separated by spaces. */
    String members(String id, String path) {
        return members.get(id + " " + path).getCurrentMembers().entrySet().stream()
                .map(member -> member.getKey() + "=" + new String(member.getValue(), StandardCharsets.UTF_8))
                .collect(Collectors.joining(" "));
    }

    /** Ends a member. */
    String part(String id, String path) {
        members.remove(id + " " + path).close();
        return "";
    }

    /** Starts a PersistentNode, and waits until Curator believes that it has its node. */
    String register(String id, String path, String data) throws Exception {
        byte[] bytes = data.getBytes(StandardCharsets.UTF_8);
        PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, path, bytes);
        nodes.put(id + " " + path, node);
        node.start();
        if (!node.waitForInitialCreate(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no node");
        }
        return "";
    }

    /** Closes a PersistentNode, which deletes its node. */
    String unregister(String id, String path) throws Exception {
        nodes.remove(id + " " + path).close();
        return "";
    }
}
