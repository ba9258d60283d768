//! The reports of the servers: ZooKeeper's four-letter words, parsed.
//!
//! Each function asks one server by its address. Formats: the "Commands" part of ZooKeeper's administrator's
//! guide, and `org.apache.zookeeper.server.command` of 3.8, which is more exact.

mod connection;
mod dump;
mod role;
mod version;
mod watches;
mod word;

pub use self::connection::{Connection, connections};
pub use self::dump::{Dump, dump, session_gone};
pub(crate) use self::dump::{forgotten, leader, settled_dump};
pub use self::role::{Role, role};
pub use self::version::version;
pub use self::watches::{Watches, watch_count, watches};
pub use self::word::{counter, word};

use crate::error::HarnessError;

/// A session as the reports write it: `0x` and hexadecimal digits, of two's complement when negative.
pub(crate) fn session_id(text: &str) -> Result<i64, HarnessError> {
    text.strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .map(u64::cast_signed)
        .ok_or_else(|| HarnessError::malformed(format!("the session `{text}`")))
}
