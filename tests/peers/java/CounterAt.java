import java.io.File;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Makes the data folder of a server on which a node has had very many children, by ZooKeeper's own classes.
 *
 * <p>Arguments: the folder, the node's path, and the number that its next sequential child gets.
 */
public final class CounterAt {
    public static void main(String[] arguments) throws Exception {
        DataTree tree = new DataTree();
        long zxid = 0;
        String path = "";
        for (String name : arguments[1].substring(1).split("/")) {
            path += "/" + name;
            zxid++;
            tree.createNode(
                    path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, 0, -1, zxid, System.currentTimeMillis());
        }
        zxid++;
        tree.setCversionPzxid(path, Integer.parseInt(arguments[2]), zxid);
        tree.lastProcessedZxid = zxid;
        File folder = new File(arguments[0]);
        FileTxnSnapLog files = new FileTxnSnapLog(folder, folder);
        files.save(tree, new ConcurrentHashMap<>(), true);
        files.close();
    }
}
