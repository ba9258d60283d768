//! The local queue in a small world: a server, and the tasks that drive the queue.

mod exhaustive;
mod leaving;
mod random;
mod server;
mod shell;
mod tables;
mod world;

use super::ContenderKind;
use crate::znode::name::Kind;

/// The kind of the contenders for a mutex.
const LOCK: ContenderKind = ContenderKind::Lock(Kind::LOCK);
