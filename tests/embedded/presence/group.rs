//! Members that join, leave and come back, and what a view shows of them.

use std::collections::BTreeSet;

use futures::future::join_all;
use lockkeeper::presence::{Member, MemberLayout, Membership, PresenceState};
use lockkeeper::view::{ViewChange, ViewChanges};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Group};

use lockkeeper_tests::Timing;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{client, newest_session, state_is};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

const GROUP: &str = "/groups/web";

fn group(manager: &ConnectionManager) -> Group {
    Group::new(manager, GROUP).unwrap()
}

async fn join(group: &Group, id: &str, payload: &str) -> Membership {
    let membership = group.join(id, payload).unwrap();
    within("the join", membership.registered()).await.unwrap().unwrap();
    membership
}

/// The next change of a member: what it is, the name of the node, and the last data.
async fn next(changes: &mut ViewChanges<Member>) -> (&'static str, String, Vec<u8>) {
    let change = async {
        loop {
            let difference = changes.next().await.unwrap();
            let of_member = |change: &&ViewChange<Member>| !change.path().is_empty();
            let Some(change) = difference.changes().iter().find(of_member) else { continue };
            let node = change.node().or_else(|| change.before()).unwrap();
            let kind = match change {
                ViewChange::Created { .. } => "joined",
                ViewChange::Deleted { .. } => "left",
                ViewChange::Recreated { .. } => "joined again",
                _ => "changed",
            };
            return (kind, change.path().to_owned(), node.data().to_vec());
        }
    };
    within("a change", change).await.unwrap()
}

#[tokio::test]
async fn a_view_tells_which_member_joined_changed_and_left() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let group = group(&client(&server_fixture).await);
    let view = group.members().unwrap();
    within("the view", view.ready()).await.unwrap().unwrap();
    assert!(view.ids().is_empty());
    let mut changes = view.changes();
    let change = |kind, name: &str, data: &str| (kind, name.to_owned(), data.as_bytes().to_vec());
    let membership = join(&group, "a", "one").await;
    assert_eq!(next(&mut changes).await, change("joined", "a", "one"));
    membership.set_payload("two").await.unwrap();
    assert_eq!(next(&mut changes).await, change("changed", "a", "two"));
    let _other = join(&group, "b", "").await;
    assert_eq!(next(&mut changes).await, change("joined", "b", ""));
    within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(view.ids(), ["a", "b"]);
    membership.leave().await.unwrap();
    assert_eq!(next(&mut changes).await, change("left", "a", "two"));
}

#[tokio::test]
async fn members_with_one_id_are_never_merged() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (group(&client(&server_fixture).await), group(&client(&server_fixture).await));
    let first = join(&here, "a", "first").await;
    let second = there.join("a", "second").unwrap();
    let mut watch = second.watch();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    let view = there.members().unwrap();
    let snapshot = within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(snapshot.get("a").unwrap().data(), b"first");
    first.leave().await.unwrap();
    within("the join", second.registered()).await.unwrap().unwrap();
    let snapshot = within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(snapshot.get("a").unwrap().data(), b"second");
}

#[tokio::test]
async fn a_member_is_back_after_the_end_of_its_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let group = group(&manager);
    let members = join_all((0..20).map(|id| join_owned(&group, id))).await;
    let watcher = self::group(&server_fixture.rival).members().unwrap();
    within("the view", watcher.ready()).await.unwrap().unwrap();
    let mut watches: Vec<_> = members.iter().map(Membership::watch).collect();
    let before: Vec<_> = watches.iter().map(lockkeeper::Watch::state).collect();
    assert!(server_fixture.server.expire(session));
    for (watch, before) in watches.iter_mut().zip(&before) {
        state_is(watch, |state| state.is_registered() && state != *before).await;
    }
    within("the view", watcher.sync()).await.unwrap().unwrap();
    assert_eq!(watcher.ids().len(), 20);
}

async fn join_owned(group: &Group, id: usize) -> Membership {
    join(group, &format!("{id:04}"), "").await
}

#[tokio::test]
async fn the_members_of_kazoo_are_read() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let znodes = server_fixture.rival.znodes();
    znodes.create(GROUP, "", CreateMode::Persistent).await.unwrap();
    let unique = "0123456789abcdef0123456789abcdef";
    for (name, data) in [(format!("{unique}__party__"), "kazoo-1"), (format!("{unique}-kazoo-2"), "")] {
        znodes.create(format!("{GROUP}/{name}"), data, CreateMode::Ephemeral).await.unwrap();
    }
    let group = group(&client(&server_fixture).await);
    let _ours = join(&group, "rust", "").await;
    let view = group.members().unwrap();
    let snapshot = within("the view", view.sync()).await.unwrap().unwrap();
    let mut members: Vec<_> = snapshot
        .children("")
        .map(|(_, node)| node.value().unwrap())
        .map(|of| (of.id(), of.layout()))
        .collect();
    members.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(
        members,
        [
            ("kazoo-1", MemberLayout::Party),
            ("kazoo-2", MemberLayout::ShallowParty),
            ("rust", MemberLayout::Named)
        ]
    );
}

#[tokio::test]
async fn an_inspection_shows_each_member_with_its_payload_and_its_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let group = group(&client(&server_fixture).await);
    assert!(group.inspect().await.unwrap().members().is_empty());
    let session = newest_session(&server_fixture);
    let _ours = join(&group, "web-1", "10.0.0.7").await;
    let name = format!("{GROUP}/0123456789abcdef0123456789abcdef__party__");
    server_fixture.rival.znodes().create(name, "kazoo", CreateMode::Ephemeral).await.unwrap();
    let inspection = group.inspect().await.unwrap();
    let [party, ours] = inspection.members() else { panic!("{inspection}") };
    assert_eq!(
        (party.id(), party.layout(), party.node().data()),
        ("kazoo", MemberLayout::Party, Some(&b"kazoo"[..]))
    );
    assert_eq!(
        (ours.id(), ours.layout(), ours.node().data()),
        ("web-1", MemberLayout::Named, Some(&b"10.0.0.7"[..]))
    );
    assert_eq!(ours.node().session(), session);
    assert_ne!(party.node().session(), session);
    assert!(ours.node().age() < Timing::event(), "{:?}", ours.node().age());
    let text = inspection.to_string();
    assert!(text.starts_with(&format!("group {GROUP}: 2 members\n  kazoo  5 bytes  session 0x")), "{text}");
}

#[tokio::test]
async fn an_inspection_shows_a_member_that_may_not_be_read_without_its_payload() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let group = group(&client(&server_fixture).await);
    let session = newest_session(&server_fixture);
    let _ours = join(&group, "web-1", "10.0.0.7").await;
    let hidden = When::op(Op::GetData).path(&format!("{GROUP}/web-1")).always();
    let _hidden = server_fixture.server.fault(hidden, Fault::Refuse(ErrorCode::NoAuth));
    let inspection = group.inspect().await.unwrap();
    let [member] = inspection.members() else { panic!("{inspection}") };
    assert_eq!((member.id(), member.node().data(), member.node().session()), ("web-1", None, session));
}

#[tokio::test]
async fn an_id_that_is_no_name_is_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let group = group(&client(&server_fixture).await);
    let unique = "0123456789abcdef0123456789abcdef";
    let as_of_kazoo = [format!("{unique}-web"), format!("{unique}-"), format!("{unique}__party__")];
    for id in ["", "a/b", "..", ".", "a\0"].into_iter().chain(as_of_kazoo.iter().map(String::as_str)) {
        let refused = group.join(id, "").unwrap_err();
        assert!(matches!(refused, Error::Config(_)), "{id:?}: {refused}");
    }
    // Such a name is a member like any other.
    let joined = join(&group, unique, "").await;
    let view = group.members().unwrap();
    within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(view.ids(), [unique]);
    joined.leave().await.unwrap();
}

/// With `LOCKKEEPER_SOAK=1`: 1,000 members, and ten rounds of churn.
#[tokio::test]
async fn every_reader_ends_with_the_members_that_stayed() {
    let is_soak = std::env::var("LOCKKEEPER_SOAK").is_ok_and(|value| value == "1");
    let (count, rounds) = if is_soak { (1_000, 10) } else { (100, 2) };
    let server_fixture = ServerFixture::start().await.unwrap();
    let managers = join_all((0..4).map(|_| client(&server_fixture))).await;
    let groups: Vec<Group> = managers.iter().map(group).collect();
    let watcher = group(&server_fixture.rival).members().unwrap();
    let mut changes = watcher.changes();
    let mut reported: BTreeSet<String> = BTreeSet::new();
    let mut members: Vec<Option<Membership>> = (0..count).map(|_| None).collect();
    for round in 0..=rounds {
        let joins = members.iter_mut().enumerate().filter(|(_, member)| member.is_none());
        join_all(joins.map(async |(id, member)| {
            *member = Some(join_owned(&groups[id % groups.len()], id).await);
        }))
        .await;
        let leaves = members.iter_mut().enumerate().filter(|(id, _)| (id + round) % 3 == 0);
        join_all(leaves.filter_map(|(_, member)| member.take()).map(Membership::leave)).await;
    }
    within("the view", watcher.sync()).await.unwrap().unwrap();
    let snapshot = watcher.snapshot();
    let stayed: BTreeSet<String> = members.iter().flatten().map(|member| member.id().to_owned()).collect();
    assert_eq!(watcher.ids().into_iter().collect::<BTreeSet<_>>(), stayed);
    // The differences lead to the same members.
    while changes.snapshot().revision() < snapshot.revision() {
        for change in
            changes.next().await.unwrap().changes().iter().filter(|change| !change.path().is_empty())
        {
            let is_new = match change.node() {
                Some(_) => reported.insert(change.path().to_owned()),
                None => reported.remove(change.path()),
            };
            assert!(is_new || !matches!(change, ViewChange::Created { .. }), "reported twice: {change:?}");
        }
    }
    assert_eq!(reported, stayed);
}

/// The requests of a member that joins and leaves: the create, the read that sets its watch, and the delete;
/// and those of the view for each of the two: the read of the list, and that of the member.
const REQUESTS_MAX: usize = 6;

#[tokio::test]
async fn a_thousand_members_join_and_leave_within_the_stated_number_of_requests() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let managers = join_all((0..4).map(|_| client(&server_fixture))).await;
    let groups: Vec<Group> = managers.iter().map(group).collect();
    let view = group(&server_fixture.rival).members().unwrap();
    let join = |id: usize| join_owned(&groups[id % groups.len()], id);
    let mut members = join_all((0..1_000).map(join)).await;
    let ids: Vec<String> = (0..1_000).map(|id| format!("{id:04}")).collect();
    within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(view.ids(), ids);

    let transcript = server_fixture.server.transcript();
    let mut changes = 0;
    for _ in 0..3 {
        let leaving: Vec<Membership> = members.drain(..250).collect();
        let names: Vec<usize> = leaving.iter().map(|member| member.id().parse().unwrap()).collect();
        for left in join_all(leaving.into_iter().map(Membership::leave)).await {
            left.unwrap();
        }
        changes += names.len();
        members.extend(join_all(names.into_iter().map(join)).await);
    }
    within("the view", view.sync()).await.unwrap().unwrap();
    assert_eq!(view.ids(), ids);
    let is_request = |subject: &Subject| matches!(subject, Subject::Request(op) if *op != Op::Ping);
    let requests = transcript.passed().iter().filter(|passed| is_request(&passed.subject)).count();
    // Confirmations of the leases, and the view's sync.
    let more = 100;
    assert!(requests <= changes * REQUESTS_MAX + more, "{requests} requests for {changes} members");
    println!("{requests} requests for {changes} members that left and joined");
}
