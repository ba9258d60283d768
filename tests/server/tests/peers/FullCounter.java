import java.io.File;
import java.util.HashMap;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileSnap;

/** Writes a snapshot in which the node /q has made almost as many children as its counter can count. */
public class FullCounter {
    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0], "version-2");
        directory.mkdirs();
        DataTree tree = new DataTree();
        tree.createNode("/q", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, 0, -1, 1, 1);
        tree.setCversionPzxid("/q", Integer.parseInt(arguments[1]), 1);
        tree.lastProcessedZxid = 1;
        new FileSnap(directory).serialize(tree, new HashMap<>(), new File(directory, "snapshot.1"), true);
    }
}
