//! The members of a group: an ephemeral node for each, in one directory.
//!
//! # Layout
//!
//! A member of Curator's `GroupMember` is `<path>/<id>` with the payload as data. Kazoo's `Party` has
//! `<path>/<32 hex digits>__party__` with the identifier as data, and its `ShallowParty`
//! `<path>/<32 hex digits>-<identifier>` without data. We write the first layout, and read all three.
//!
//! Sources: Apache Curator's `GroupMember`, CURATOR-314 and CURATOR-485 (members that come and go), kazoo's
//! `recipe/party.py`.

#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
mod member;
mod membership;

pub use self::handle::Group;
pub use self::inspect::{GroupInspection, MemberInspection};
pub use self::member::{Member, MemberLayout, MembersView};
pub use self::membership::Membership;
