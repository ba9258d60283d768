//! The backend that uses the `zookeeper-client` crate: the only folder that names it.
//!
//! The workarounds for its weaknesses are here. It sends a request at the first poll of a future, and some of
//! these futures borrow the client: they are boxed with a clone of it and polled once at once. After a broken
//! link most of its errors say nothing about the request, so only definite answers of the server count as
//! such. It pauses longer and longer between rounds of the list of servers, so a single server is repeated.
//! It has its servers for ever, so a session gets another client for other servers (`session_move`).

mod attached;
mod backend;
mod convert;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod link_watch;
mod look;
mod open_sessions;
mod route;
mod security;
mod servers;
mod session;
mod session_move;

pub(crate) use self::backend::ZooKeeper;
