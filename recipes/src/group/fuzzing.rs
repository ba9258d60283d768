use super::member::{Member, MemberLayout, is_read_as_kazoo};

/// The name of a member's node up to the first line feed, and behind it the data.
pub(crate) fn group_members(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (name, payload) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(member) = Member::decode(name, payload.as_bytes()) else { return assert!(name.is_empty()) };
    assert_eq!(is_read_as_kazoo(name), member.layout() != MemberLayout::Named);
    match member.layout() {
        MemberLayout::Named => assert_eq!(member.id(), name),
        MemberLayout::Party => assert_eq!(member.id(), payload),
        MemberLayout::ShallowParty => assert!(name.ends_with(member.id())),
    }
}
