//! One ZooKeeper session: one epoch.
//!
//! Nothing moves from one session to the next: nodes, watches, replies and guards belong to their session and
//! end with it. Every wait for a reply ends with the session at the latest.

mod cleanup_jobs;
mod closing;
mod connections;
mod counted_wire;
mod deletion_watch;
mod directory;
mod epoch;
mod grant;
mod handle;
mod hang_ups;
pub(crate) mod janitor;
mod known_node;
mod lease_keeper;
mod lease_renewal;
mod loss_notice;
pub(crate) mod lost_create;
#[cfg(feature = "metrics")]
mod measured_wire;
mod node_bytes;
#[cfg(test)]
mod node_bytes_test;
mod node_flags;
mod node_register;
mod observe;
#[cfg(test)]
mod observe_test;
mod origin;
mod own_watch;
mod owned_node;
#[cfg(test)]
mod owned_node_test;
mod owned_nodes;
mod parker;
mod requests;
mod retry;
mod send_suspect;
mod settings;
mod suspect_requests;
#[cfg(test)]
mod suspect_requests_test;
mod table;
mod tasks;
mod txn_in_flight;
mod verify;
mod watches;
mod zxid_history;

pub(crate) use self::cleanup_jobs::{CleanupJobs, PendingJobs};
pub(crate) use self::closing::ClosingNodes;
pub(crate) use self::directory::{ParentLifetime, make_directory, make_queue_directory};
pub use self::epoch::Epoch;
pub(crate) use self::handle::{Session, WeakSession};
pub(crate) use self::hang_ups::Suspect;
#[cfg(feature = "__simulation")]
pub(crate) use self::lease_keeper::SessionLease;
pub(crate) use self::observe::Observation;
pub(crate) use self::origin::Origin;
pub(crate) use self::own_watch::SharedWatch;
pub(crate) use self::owned_node::OwnedNode;
pub(crate) use self::retry::Stop;
pub(crate) use self::settings::{SessionPurpose, SessionSettings};
pub(crate) use self::table::SessionTable;
pub(crate) use self::txn_in_flight::TxnInFlight;
pub(crate) use self::verify::Witness;
pub(crate) use self::watches::{NodeWatch, PathWatch, ReadRoom, ReadWindow, Reservation};
pub(crate) use self::zxid_history::ServersReset;
