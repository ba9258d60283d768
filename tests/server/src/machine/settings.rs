use crate::protocol::Op;
use crate::wire::MAX_FRAME;

/// How a [`Machine`](super::Machine) behaves. All times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Number of servers in front of the tree. Default 1.
    pub servers: usize,
    /// Length of a tick: sessions end at multiples of it. Default 100, where a real server has 2000, so that
    /// tests of expiry need not be slow.
    pub tick: i64,
    /// Shortest session timeout a client can get. Default two ticks.
    pub min_timeout: i32,
    /// Longest session timeout a client can get. Default 40 000, as with the real server's default tick.
    pub max_timeout: i32,
    /// Whether nodes with a time to live are allowed. Default false, as in the real server.
    pub ttl_nodes: bool,
    /// Whether `create2` in a transaction answers with metadata. Default false: 3.8.0 forgets it
    /// (ZOOKEEPER-4026), 3.8.2 and later do not.
    pub stat_in_multi: bool,
    /// Whether an event says which transaction caused it. Default false: servers before 3.9 do not
    /// (ZOOKEEPER-4655).
    pub event_zxids: bool,
    /// Time between two searches for containers to remove. Default 60 000.
    pub container_interval: i64,
    /// How long a container that never had children is kept; 0, the default, is for ever.
    pub container_max_never_used: i64,
    /// Whether an ensemble serves only while more than half of its servers run, and elects a leader. Default
    /// false: it serves while any of them runs.
    pub quorum: bool,
    /// Whether servers other than the leader report the live sessions to it only every half tick, as
    /// followers do. Default false.
    pub relay_touches: bool,
    /// The longest request that a server reads, in bytes: its `jute.maxbuffer`. Default 1 MiB, less one byte.
    pub max_request: usize,
    /// The requests that the servers do not know: they close the connection without an answer, as ClickHouse
    /// Keeper does. Default none; a real server answers, and closes then.
    pub unknown: Vec<Op>,
    /// Whether the servers differ from ZooKeeper's as those of ClickHouse Keeper do. Each connect gets a new
    /// session, also if it asks for its old one. The events of a recursive watch name the watched node. A
    /// write of a node's data counts in its parent's `cversion`, and the deletion of a child does not move
    /// the parent's `pzxid`. A session that only reads at a server which is not the leader expires. Default
    /// false.
    pub like_clickhouse: bool,
    /// The number of the first sequential child of every node made. Default 0.
    pub first_sequence: i32,
    /// The longest record of the end of a session that a server can read, in bytes. A longer one stops every
    /// server for ever, as in the real server (ZOOKEEPER-4306). Default: no limit.
    pub close_record_max: Option<usize>,
    /// Id of the first session; later ones count up. Default `0x1000000000000`.
    pub first_session: i64,
    /// The secret for session passwords.
    pub secret: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: 1,
            tick: 100,
            min_timeout: 200,
            max_timeout: 40_000,
            ttl_nodes: false,
            stat_in_multi: false,
            event_zxids: false,
            container_interval: 60_000,
            container_max_never_used: 0,
            quorum: false,
            relay_touches: false,
            max_request: MAX_FRAME,
            unknown: Vec::new(),
            like_clickhouse: false,
            first_sequence: 0,
            close_record_max: None,
            first_session: 1 << 48,
            secret: 0x5eed,
        }
    }
}
