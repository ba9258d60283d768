//! Locks on a cluster of three nodes.

use std::net::TcpListener;

use futures::future::join_all;
use lockkeeper_redis::{ConnectError, ConnectionManager, Lock, Mutex, Owner, ReentrantMutex, Semaphore};
use lockkeeper_redis_tests::{RedisServer, left_out};
use lockkeeper_tests::{Timing, eventually};
use redis::FromRedisValue;

use crate::fixture::{LONG, builder, wait_for_queue};

const SLOTS: u16 = 16_384;

/// Three nodes, each with a third of the slots, which keep their data.
struct Cluster {
    nodes: Vec<RedisServer>,
    /// The nodes' names among themselves.
    ids: Vec<String>,
}

async fn ask<T: FromRedisValue>(node: &RedisServer, words: &[&str]) -> T {
    let mut command = redis::Cmd::new();
    words.iter().for_each(|word| {
        command.arg(*word);
    });
    command.query_async(&mut node.raw().await.unwrap()).await.unwrap()
}

impl Cluster {
    async fn start() -> Self {
        let buses = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let buses = buses.map(|listener| listener.local_addr().unwrap().port().to_string());
        let start = |bus: &String| {
            let bus = bus.clone();
            async move {
                let options =
                    ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "2000"];
                let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
                // The other nodes continue without one.
                let alone = ["--cluster-require-full-coverage", "no"];
                RedisServer::start(&[&options[..], &keeps, &alone].concat()).await.unwrap()
            }
        };
        let nodes = join_all(buses.iter().map(start)).await;
        let mut ids = Vec::new();
        let share = SLOTS.div_ceil(3);
        for (index, node) in (0_u16..).zip(&nodes) {
            ids.push(ask::<String>(node, &["CLUSTER", "MYID"]).await);
            ask::<()>(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]).await;
            let (first, last) = (index * share, ((index + 1) * share).min(SLOTS) - 1);
            let (first, last) = (first.to_string(), last.to_string());
            ask::<()>(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
        }
        let cluster = Self { nodes, ids };
        cluster.meet(&buses).await;
        cluster.agree().await;
        cluster
    }

    /// Tells each node of each other one until it knows it: it forgets one that does not answer within the
    /// node timeout.
    async fn meet(&self, buses: &[String]) {
        let others = self.nodes.iter().zip(self.ids.iter().zip(buses));
        for (at, (node, (id, bus))) in self.nodes.iter().flat_map(|at| others.clone().map(move |of| (at, of)))
        {
            let port = node.port().to_string();
            eventually("a node that is known", Timing::event(), || async {
                let known: String = ask(at, &["CLUSTER", "NODES"]).await;
                if !known.contains(id.as_str()) {
                    ask::<()>(at, &["CLUSTER", "MEET", "127.0.0.1", &port, bus]).await;
                }
                known.contains(id.as_str()).then_some(())
            })
            .await
            .unwrap();
        }
    }

    /// Waits until every node knows that every slot is served.
    async fn agree(&self) {
        for node in &self.nodes {
            eventually("a node that knows the whole cluster", Timing::event(), || async {
                let info: String = ask(node, &["CLUSTER", "INFO"]).await;
                let knows = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"];
                knows.iter().all(|word| info.contains(word)).then_some(())
            })
            .await
            .unwrap();
        }
    }

    /// By one of its nodes, and then another one.
    async fn client(&self, first: usize) -> ConnectionManager {
        let second = self.nodes[(first + 1) % 3].url();
        builder(&self.nodes[first].url(), LONG).cluster([second.as_str()]).connect().await.unwrap()
    }

    async fn slot(&self, name: &str) -> u16 {
        ask(&self.nodes[0], &["CLUSTER", "KEYSLOT", name]).await
    }

    /// The node of a lock, before any slot has moved.
    async fn node_of(&self, name: &str) -> usize {
        usize::from(self.slot(name).await / SLOTS.div_ceil(3))
    }

    /// A name of a lock on this node.
    async fn name_on(&self, node: usize) -> String {
        for number in 0.. {
            let name = format!("lock-{number}");
            if self.node_of(&name).await == node {
                return name;
            }
        }
        panic!("no name is on node {node}")
    }
}

#[tokio::test]
async fn locks_on_every_node_of_a_cluster_are_handed_off_to_clients_of_other_nodes() {
    if left_out() {
        return;
    }
    let cluster = Cluster::start().await;
    let (one, other) = (cluster.client(0).await, cluster.client(1).await);
    for node in 0..3 {
        let name = cluster.name_on(node).await;
        let (first, second) = (Mutex::new(&one, &name).unwrap(), Mutex::new(&other, &name).unwrap());
        let guard = first.acquire().await.unwrap();
        assert!(second.try_acquire().await.unwrap().is_none());
        let waiting = tokio::spawn(async move { second.acquire().await.unwrap() });
        wait_for_queue(&cluster.nodes[node], &name, 1).await;
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        let next = waiting.await.unwrap();
        assert!(next.is_valid() && next.fencing_token() > token);
        next.release().await.unwrap();
    }
    let owner = Owner::new("one");
    let locks: Vec<Box<dyn Lock>> = vec![
        Box::new(ReentrantMutex::new(&one, "b").unwrap().for_owner(&owner)),
        Box::new(Semaphore::new(&one, "{shop}:c", 2).unwrap().permits(2)),
    ];
    for lock in locks {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let limiter = lockkeeper_redis::RateLimiter::new(&other, "r", 1, LONG).unwrap();
    assert!(limiter.admit().await.unwrap().is_fresh());
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
}

#[tokio::test]
async fn a_node_that_crashes_and_keeps_its_data_keeps_its_locks_and_other_nodes_keep_serving() {
    if left_out() {
        return;
    }
    let mut cluster = Cluster::start().await;
    let (name, elsewhere) = (cluster.name_on(2).await, cluster.name_on(0).await);
    let (one, other) = (cluster.client(0).await, cluster.client(0).await);
    let (mutex, unharmed) = (Mutex::new(&one, &name).unwrap(), Mutex::new(&one, &elsewhere).unwrap());
    let (guard, untouched) = (mutex.acquire().await.unwrap(), unharmed.acquire().await.unwrap());
    let waiting = tokio::spawn({
        let mutex = Mutex::new(&other, &name).unwrap();
        async move { mutex.acquire().await.unwrap() }
    });
    wait_for_queue(&cluster.nodes[2], &name, 1).await;
    cluster.nodes[2].kill().await.unwrap();
    untouched.release().await.unwrap();
    unharmed.acquire().await.unwrap().release().await.unwrap();
    // Also with scripts that no node has yet.
    let permits = Semaphore::new(&one, &format!("{{{elsewhere}}}:s"), 2).unwrap();
    permits.acquire().await.unwrap().release().await.unwrap();
    assert!(guard.is_valid());
    cluster.nodes[2].restart().await.unwrap();
    cluster.agree().await;
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.is_valid() && next.fencing_token() > token);
}

#[tokio::test]
async fn a_slot_that_moves_to_another_node_takes_its_lock_and_its_waiters_along() {
    if left_out() {
        return;
    }
    let cluster = Cluster::start().await;
    let name = cluster.name_on(0).await;
    let (one, other) = (cluster.client(0).await, cluster.client(1).await);
    let guard = Mutex::new(&one, &name).unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = Mutex::new(&other, &name).unwrap();
        async move { mutex.acquire().await.unwrap() }
    });
    let (from, to) = (&cluster.nodes[0], &cluster.nodes[1]);
    wait_for_queue(from, &name, 1).await;

    let (slot, port) = (cluster.slot(&name).await.to_string(), to.port().to_string());
    ask::<()>(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &cluster.ids[0]]).await;
    ask::<()>(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &cluster.ids[1]]).await;
    let keys: Vec<String> = ask(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).await;
    assert_eq!(keys.len(), 4, "every key of the lock is in its slot: {keys:?}");
    let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS"];
    migrate.extend(keys.iter().map(String::as_str));
    ask::<()>(from, &migrate).await;
    // While it moves, the old node sends clients on, once for each request.
    assert!(Mutex::new(&one, &name).unwrap().try_acquire().await.unwrap().is_none());
    for node in [to, from, &cluster.nodes[2]] {
        ask::<()>(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &cluster.ids[1]]).await;
    }
    assert!(guard.is_valid());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiting.await.unwrap();
    assert!(next.is_valid() && next.fencing_token() > token);
    next.release().await.unwrap();
}

#[tokio::test]
async fn urls_of_a_cluster_that_cannot_work_are_refused_before_anything_is_sent() {
    for other in ["", "http://127.0.0.1/", "redis://127.0.0.1:port/"] {
        let connect = ConnectionManager::builder("redis://127.0.0.1:1/").cluster([other]).connect();
        let error = connect.await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)), "{other}: {error}");
    }
    for other in ["rediss://127.0.0.1:1/", "redis://:other@127.0.0.1:1/"] {
        let connect = ConnectionManager::builder("redis://:one@127.0.0.1:1/").cluster([other]).connect();
        let error = connect.await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)), "{other}: {error}");
    }
}
