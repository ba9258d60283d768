//! One leader among many processes.
//!
//! # Protocol
//!
//! A candidate is a contender of a queue: an ephemeral sequential node, and each waits for every candidate
//! ahead. The head leads. Its data is the id of the participant, and nothing else.
//!
//! Curator keeps elections in two layouts, which do not see each other: `LeaderLatch` names its nodes
//! `latch-`, and `LeaderSelector` is an `InterProcessMutex` with the id as data, so its nodes are `lock-`.
//!
//! An observer reads the list, and watches the node of the leader. The next leader is known from the list
//! behind its deletion.
//!
//! Sources: Apache Curator's `LeaderLatch` and `LeaderSelector`, CURATOR-696 (why the owner of a node is
//! compared), CURATOR-724 (a deleted path), CURATOR-537 and CURATOR-542 (token and transactions),
//! CURATOR-171 (step-down on request).

mod handle;
mod inspect;
mod lead;
mod leadership;
mod observe;
mod recipe;
mod state;

pub use self::handle::Election;
pub(crate) use self::lead::TermPauses;
pub use self::leadership::Leadership;
pub(crate) use self::leadership::LeadershipHold;
pub use self::observe::Leader;
pub use self::state::CandidateState;
