//! Many readers or one writer.
//!
//! # Protocol
//!
//! Readers and writers wait in one queue, with ephemeral sequential nodes of the labels `__READ__` and
//! `__WRIT__`.
//!
//! 1. A *writer* waits for every earlier node. When an earlier writer's node is deleted, the waiting writer
//!    lists again before it is granted: the earlier writer may have left a reader's node behind, with its
//!    own, lower number.
//! 2. A *reader* waits for the nearest earlier writer, and for no reader.
//! 3. *Read under one's own write*: `multi[create R with W's number, check W]`. No contender that waits
//!    behind W can be granted in between.
//! 4. *Downgrade*: `multi[create R with W's number, delete W]`. At every instant one of the two nodes exists,
//!    so a writer that waits behind W continues to wait, behind R.
//! 5. An *upgrade* cannot wait: two readers would wait for each other for ever. A try queues as a writer
//!    behind its own read. If no other contender is ahead, it is granted. Otherwise its node is deleted at
//!    once, and the read stays.
//!
//! 6. *Readers of one process* may share one node ([`RwLock::with_handoff`]). A reader joins the guards of
//!    the node that is held, as long as no writer waits: a watch of the queue shows that. From then on the
//!    node is for its present guards, and the next reader queues behind the writer, with a node of its own.
//!
//! Only the first and the last hold of an owner on each side send requests.
//!
//! Sources: Apache Curator's `InterProcessReadWriteLock`; CURATOR-621 (the number of a downgraded reader).

mod convert;
mod guard;
mod inspect;
mod lending;
mod lock;
mod one_side;
mod read_sharing;
mod ticket;

pub use self::guard::{NotAlone, ReadGuard, UpgradeError, WriteGuard};
pub use self::lock::RwLock;
pub use self::one_side::RwLockSide;
pub use self::ticket::{ReadTicket, WriteTicket};
