//! Chaos on real servers: processes that contend for every kind of lock, faults that strike servers, clients
//! and what is between them, a checker that judges the recorded histories, and a picture of them.
//!
//! * `fixture`: what is contended for. `client`: a process that contends, and writes a history.
//! * `nemesis`: the faults, and a plan of them from a seed. `driver`: a round, from its servers to its
//!   verdict.
//! * `history`: what was written down. `checker`: judges it, and knows nothing else. `report`: shows it.
//! * `fenced`: a resource that checks tokens.
//! * `redis`: the same on a Redis server, for every lock of `lockkeeper-redis`.
//!
//! A plan is replayed by its seed, but its result is not, for the processes are real.

mod checker;
mod client;
mod clock;
mod driver;
mod fenced;
mod fixture;
mod history;
mod nemesis;
mod redis;
mod report;

pub use self::checker::{Rule, Violation};
pub use self::client::{ClientOptions, run_client};
pub use self::driver::{Options, Verdict, judge_again, round, soak};

pub use self::redis::{
    RedisClientOptions, RedisFault, RedisOptions, RedisVerdict, redis_round, run_redis_client,
};

/// A failure that prevents a verdict: of the harness or the machine, not of the locks.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
