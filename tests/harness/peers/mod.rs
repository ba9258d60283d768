//! Clients that other people wrote, as processes of their own: what they do is what our layouts are judged by.

mod curator;
mod dialogue;
mod driver;
mod error;

pub use self::curator::{CuratorGrant, CuratorPeer, CuratorThread};
pub use self::error::PeerError;
