#![doc = "The second ring: the real client over sockets against a server that fails on order."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod any_engine;
mod barriers;
mod between;
mod bounds;
mod cancellation;
mod case;
mod closing;
mod counters;
mod dead_server;
mod deadlock;
mod discovery;
mod edges;
mod election;
mod first_starts;
mod fixture;
mod hang_ups;
mod injected_fault;
mod injection_point;
mod keeping;
mod lending;
mod limit;
mod limiters;
mod many;
mod matrix;
mod moving;
mod named;
mod named_node;
mod node_bytes;
mod once_cell;
mod oracle;
mod other_servers;
mod outcomes;
mod partition;
mod paths;
mod pool;
mod presence;
mod read_back;
mod reading;
mod reads;
mod revoker;
mod rights;
mod runtimes;
mod sample;
mod scenario;
mod schedule;
mod server_fixture;
mod session_ids;
mod shared_starts;
mod stored;
mod strike;
mod unowned;
mod view;
mod wiped;
mod work_queue;
