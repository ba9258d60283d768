import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;

/**
 * The services of a {@link CuratorPeer}: a ServiceDiscovery for each path, with payloads of the class Zone. Compiled
 * only where curator-x-discovery is.
 */
final class Services implements CuratorPeer.Asked {
    /** The payload: its fields are written in this order. */
    public static final class Zone {
        public String zone;
        public int weight;
        public double load;
    }

    private final CuratorFramework client;
    private final Map<String, ServiceDiscovery<Zone>> discoveries = new ConcurrentHashMap<>();
    private final Map<String, ServiceInstance<Zone>> instances = new ConcurrentHashMap<>();
    private final Map<String, ServiceProvider<Zone>> providers = new ConcurrentHashMap<>();

    Services(CuratorFramework client) {
        this.client = client;
    }

    @Override
    public String ask(String[] words) throws Exception {
        String id = words[2];
        String path = words[3];
        switch (words[1]) {
            case "announce":
                return register(id, path, words[4], Integer.parseInt(words[5]), words[6]);
            case "withdraw":
                return unregister(id, path);
            case "lookup":
                return query(path, words[4]);
            case "rewrite":
                return rewrite(path, Boolean.parseBoolean(words[4]));
            default:
                return provide(path, words[4], Integer.parseInt(words[5]));
        }
    }

    /** Registers an instance with the id: its zone "null" is no payload. */
    private String register(String id, String path, String service, int port, String zone) throws Exception {
        ServiceInstanceBuilder<Zone> builder = ServiceInstance.<Zone>builder()
                .name(service).id(id).address("10.0.0.7").port(port).registrationTimeUTC(1610116500446L);
        if (!zone.equals("null")) {
            Zone payload = new Zone();
            payload.zone = zone;
            payload.weight = 3;
            payload.load = 1e10;
            builder = builder.payload(payload).uriSpec(new UriSpec("{scheme}://{address}:{port}/x"));
        }
        ServiceInstance<Zone> instance = builder.build();
        discovery(path).registerService(instance);
        instances.put(id + " " + path, instance);
        return "";
    }

    /** Ends it. */
    private String unregister(String id, String path) throws Exception {
        discovery(path).unregisterService(instances.remove(id + " " + path));
        return "";
    }

    /** The instances that Curator reads: each ID=PORT,ENABLED,ZONE,URI. */
    private String query(String path, String service) throws Exception {
        return discovery(path).queryForInstances(service).stream().map(instance -> {
            Zone zone = instance.getPayload();
            String payload = zone == null ? "null" : zone.zone + "/" + zone.weight + "/" + zone.load;
            String uri = instance.getUriSpec() == null ? "null" : instance.buildUriSpec();
            return instance.getId() + "=" + instance.getPort() + "," + instance.isEnabled() + "," + payload + ","
                    + uri;
        }).sorted().collect(Collectors.joining(" "));
    }

    /** Reads data by Curator's serializer and writes it again; compatible or with the field enabled. */
    private String rewrite(String node, boolean compatible) throws Exception {
        JsonInstanceSerializer<Zone> serializer = new JsonInstanceSerializer<>(Zone.class, compatible);
        byte[] data = client.getData().forPath(node);
        return new String(serializer.serialize(serializer.deserialize(data)), StandardCharsets.UTF_8);
    }

    /** The ids that a ServiceProvider gives for so many calls, sorted and without repetition. */
    private String provide(String path, String service, int calls) throws Exception {
        String key = service + " " + path;
        ServiceProvider<Zone> provider = providers.get(key);
        if (provider == null) {
            provider = discovery(path).serviceProviderBuilder()
                    .serviceName(service).providerStrategy(new RoundRobinStrategy<>()).build();
            provider.start();
            providers.put(key, provider);
        }
        SortedSet<String> ids = new TreeSet<>();
        for (int call = 0; call < calls; call++) {
            ServiceInstance<Zone> instance = provider.getInstance();
            if (instance != null) {
                ids.add(instance.getId());
            }
        }
        return String.join(" ", ids);
    }

    private ServiceDiscovery<Zone> discovery(String path) throws Exception {
        ServiceDiscovery<Zone> discovery = discoveries.get(path);
        if (discovery == null) {
            discovery = ServiceDiscoveryBuilder.builder(Zone.class).client(client).basePath(path).build();
            discovery.start();
            discoveries.put(path, discovery);
        }
        return discovery;
    }
}
