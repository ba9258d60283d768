use std::sync::Arc;

use lockkeeper_core::{DecodeFailure, ViewNode};

use crate::view::ChildrenView;

/// The members of a group, followed: see [`Group::members`](crate::Group::members).
///
/// # Methods
///
/// Those of every [`ChildrenView`](crate::ChildrenView).
pub type MembersView = ChildrenView<Member>;

/// The suffix of the nodes of kazoo's `Party`.
const PARTY: &str = "__party__";

/// The length of a kazoo node's unique part, in hex digits.
const UNIQUE_DIGITS: usize = 32;

/// A member of a group, as its node shows it. The payload is the data of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    id: String,
    layout: MemberLayout,
}

/// How the node of a member shows its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberLayout {
    /// The name of the node is the id, and its data the payload: Curator's `GroupMember`, and ours.
    Named,
    /// The data is the id: kazoo's `Party`.
    Party,
    /// The name ends with the id: kazoo's `ShallowParty`.
    ShallowParty,
}

impl Member {
    /// Reads a child of a group. The root of the view is the group itself, and no member.
    pub(super) fn decode(name: &str, data: &[u8]) -> Result<Self, DecodeFailure> {
        if name.is_empty() {
            return Err("this node is the group, and no member".into());
        }
        let (id, layout) = match of_kazoo(name) {
            Some(PARTY) => (String::from_utf8_lossy(data).into_owned(), MemberLayout::Party),
            Some(rest) => match rest.strip_prefix('-') {
                Some(id) => (id.to_owned(), MemberLayout::ShallowParty),
                None => (name.to_owned(), MemberLayout::Named),
            },
            None => (name.to_owned(), MemberLayout::Named),
        };
        Ok(Self { id, layout })
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How the node shows the id.
    #[must_use]
    pub fn layout(&self) -> MemberLayout {
        self.layout
    }
}

/// Whether a node of this name is read as one of kazoo's.
pub(super) fn is_read_as_kazoo(name: &str) -> bool {
    Member::decode(name, b"").is_ok_and(|member| member.layout != MemberLayout::Named)
}

/// What follows the unique part of a name.
fn of_kazoo(name: &str) -> Option<&str> {
    let (unique, rest) = name.split_at_checked(UNIQUE_DIGITS)?;
    let is_hex = unique.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then_some(rest)
}

impl MembersView {
    /// The ids of the members in the latest snapshot, in the order of the names of their nodes. Sends
    /// nothing.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        let id = |(_, node): (&str, &Arc<ViewNode<Member>>)| node.value().ok().map(|of| of.id.clone());
        snapshot.children("").filter_map(id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_data_show_the_id_in_each_layout() {
        let unique = "0123456789abcdef0123456789abcdef";
        for (name, data, id, layout) in [
            ("web-3", "payload", "web-3", MemberLayout::Named),
            ("größe", "", "größe", MemberLayout::Named),
            (&format!("{unique}__party__"), "web-3", "web-3", MemberLayout::Party),
            (&format!("{unique}-web-3"), "", "web-3", MemberLayout::ShallowParty),
            (&format!("{unique}-"), "", "", MemberLayout::ShallowParty),
            (unique, "", unique, MemberLayout::Named),
            (&format!("{unique}x"), "", &format!("{unique}x"), MemberLayout::Named),
            ("0123-web", "", "0123-web", MemberLayout::Named),
            // A character across the end of the unique part.
            (&format!("{}ä", &unique[1..]), "", &format!("{}ä", &unique[1..]), MemberLayout::Named),
        ] {
            let member = Member::decode(name, data.as_bytes()).unwrap();
            assert_eq!((member.id(), member.layout()), (id, layout), "{name}");
        }
        assert!(Member::decode("", b"").is_err());
    }
}
