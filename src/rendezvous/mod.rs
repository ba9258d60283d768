//! Members that enter together and leave together: a double barrier.
//!
//! # Protocol
//!
//! Each member creates an ephemeral node in a directory, whose name it chooses once: a create that has no
//! answer is repeated, and makes no second member. Then it lists the directory. A member that sees enough
//! members asks which of the nodes belong to a session, because a persistent one is no member, and
//! creates the node `ready`, in a transaction that also checks that these members exist. So at the
//! instant at which a barrier opens, enough members exist. `ready` lets in the members whose nodes are older
//! than its last write. It is final: a member that it lets in is inside, whatever the others do.
//!
//! A member leaves by deleting its node, and waits until no member of its round exists. The transaction
//! checks that another member of the round exists; the last member deletes `ready` together with its own
//! node. So while a member of a round exists, `ready` is that of its round. If the last member crashes,
//! `ready` stays. It lets nobody in, because every later member is younger, and the next round writes it
//! again.
//!
//! Sources: Apache Curator's `DistributedDoubleBarrier`, CURATOR-233, CURATOR-330, CURATOR-536, GH-1290
//! (entering without enough members), kazoo's `recipe/barrier.py`.

mod admitted;
mod decide;
mod enter;
#[cfg(test)]
mod expired_member_test;
mod inspect;
mod leave;
mod member;
mod member_list;
mod place;
#[cfg(test)]
mod refused_test;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unowned_test;

pub use self::admitted::Admitted;
pub use self::inspect::RendezvousInfo;
pub use self::place::Rendezvous;
