//! Many readers or one writer.
//!
//! # Protocol
//!
//! Readers and writers stand in one line, by ephemeral sequential nodes of the labels `__READ__` and `__WRIT__`.
//!
//! 1. A *writer* waits for every earlier node. When an earlier writer's node goes, it lists again before it enters:
//!    that writer may have left a reader's node behind, with its own, lower, number.
//! 2. A *reader* waits for the nearest earlier writer, and for no reader.
//! 3. *Read under one's own write*: `multi[create R with W's number, check W]`. Nobody who waits behind W can come
//!    between.
//! 4. *Downgrade*: `multi[create R with W's number, delete W]`. At no instant is there neither, so a writer that waits
//!    behind W goes on waiting, behind R.
//! 5. *Upgrade* cannot be waited for: two readers would wait for each other for ever. A try takes a writer's place
//!    behind one's own read; with nobody else in front it is granted, else it goes at once and the read stays.
//!
//! Only an owner's first and last hold of each side go over the network.
//!
//! Sources: Apache Curator's `InterProcessReadWriteLock`; CURATOR-621 (the number of a downgraded reader).

mod guard;
mod inspect;
mod lock;
mod one_side;
mod reservation;
mod side;
mod slot;
mod ticket;

pub use self::guard::{ReadGuard, UpgradeError, WriteGuard};
pub use self::lock::RwLock;
pub use self::one_side::RwLockSide;
pub use self::ticket::{ReadTicket, WriteTicket};
