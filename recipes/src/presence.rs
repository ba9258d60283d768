//! Nodes that are created again in each session, and the members that they are for.

#[doc(inline)]
pub use crate::group::{Member, MemberLayout, MembersView, Membership};
#[doc(inline)]
pub use lockkeeper_core::{OnDeletion, PresenceState};
