//! Between a client and its servers: connections that break, messages that are lost at chosen moments, and a
//! log of all that passed.
//!
//! A proxy reads ZooKeeper's frames, so it knows which reply belongs to which request. It does not change a
//! message, unless it is [told to lie](Proxies::lie). Use one [`Proxies`] for each client under test, so that
//! its faults strike no other.

mod arming;
mod fault;
mod gate;
mod held;
mod ledger;
mod liar;
mod link;
mod log;
mod matching;
mod proxies;
#[expect(clippy::module_inception, reason = "one main type per file, named after it")]
mod proxy;
mod record;
mod rule;
mod session;
mod tap;

pub use self::arming::Arming;
pub use self::fault::{Fault, Hold};
pub use self::gate::Direction;
pub use self::liar::Lie;
pub use self::log::Log;
pub use self::matching::Match;
pub use self::proxies::Proxies;
pub use self::proxy::Proxy;
pub use self::record::{Fate, Message, Record};
pub use self::session::RelayedSession;
