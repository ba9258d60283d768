//! Clients that other people wrote, as processes of their own: our layouts are judged by what they do.

mod curator;
mod curator_cache;
mod curator_election;
mod curator_member;
mod curator_multi;
mod curator_revoke;
mod curator_semaphore;
mod curator_service;
mod dialogue;
mod driver;
mod error;
mod peer;
mod python;

pub use self::curator::{CuratorGrant, CuratorPeer, CuratorThread};
pub use self::curator_election::CuratorElection;
pub use self::error::PeerError;
pub use self::peer::Peer;
