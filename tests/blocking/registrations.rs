//! Registrations and groups, for threads.

use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{Group, PresenceWatch, Registration};
use lockkeeper::{Error, OnDeletion, PresenceState};
use lockkeeper_tests::Timing;

use crate::support::{aside, children, connect, is_refused, server, until};

#[test]
fn a_thread_registers_a_node_that_another_one_has_after_the_release() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let first = Registration::register(&here, "/workers/7", "first").unwrap();
    let czxid = first.registered_timeout(Timing::event()).unwrap();
    assert_eq!((first.registered().unwrap(), first.state()), (czxid, PresenceState::Registered { czxid }));
    first.set_data("written").unwrap();
    let second = Registration::register_with(&there, "/workers/7", "second", OnDeletion::End).unwrap();
    until("the conflict", || matches!(second.state(), PresenceState::Conflict { .. }));
    assert!(second.registered_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    let data =
        || server.inspect(|machine| machine.tree().node("/workers/7").and_then(|node| node.data.clone()));
    assert_eq!((first.path().as_str(), data()), ("/workers/7", Some("written".into())));
    first.release().unwrap();
    assert!(second.registered().unwrap() > czxid);
    assert_eq!(data(), Some("second".into()));
    drop(second);
    until("the end of the node", || server.inspect(|machine| children(machine, "/workers")) == 0);
}

#[test]
fn threads_join_a_group_and_see_its_members() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let group = Group::new(&here, "/groups/web").unwrap();
    let members = group.members().unwrap();
    assert_eq!(members.ready().unwrap().children("").count(), 0);
    let one = group.join("a", "1").unwrap();
    one.registered().unwrap();
    let joined = Group::new(&there, "/groups/web").unwrap().join_with("b", "2", OnDeletion::End);
    let other = joined.unwrap();
    other.registered_timeout(Timing::event()).unwrap();
    members.sync().unwrap();
    assert_eq!(members.ids(), ["a", "b"]);
    other.set_payload("3").unwrap();
    assert_eq!(members.sync().unwrap().get("b").unwrap().data(), b"3");
    assert_eq!((group.path().as_str(), one.id(), other.state().is_registered()), ("/groups/web", "a", true));
    one.leave().unwrap();
    members.sync().unwrap();
    assert_eq!(members.ids(), ["b"]);
}

/// Waits until a registration has a state, and returns it.
fn followed(states: &mut PresenceWatch, is_it: impl Fn(PresenceState) -> bool) -> PresenceState {
    while !is_it(states.state()) {
        states.changed_timeout(Timing::event()).unwrap().expect("no final state");
    }
    states.state()
}

/// The error of a watch whose state does not change.
fn quiet(states: &mut PresenceWatch) -> Error {
    loop {
        if let Err(error) = states.changed_timeout(Duration::from_millis(1)) {
            return error;
        }
    }
}

#[test]
fn a_thread_follows_the_states_of_its_registration() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let first = Registration::register(&here, "/workers/7", "first").unwrap();
    let czxid = first.registered_timeout(Timing::event()).unwrap();
    let second = Registration::register(&there, "/workers/7", "second").unwrap();
    let mut states = second.watch();
    followed(&mut states, |state| matches!(state, PresenceState::Conflict { .. }));
    let error = quiet(&mut states);
    assert!(matches!(&error, Error::Timeout { path, .. } if path.as_str() == "/workers/7"), "{error}");
    let next = thread::scope(|threads| {
        let waiting = threads.spawn(|| states.changed());
        first.release().unwrap();
        waiting.join().unwrap().unwrap()
    });
    // It may be missing for a moment.
    assert!(!matches!(next, None | Some(PresenceState::Conflict { .. })), "{next:?}");
    let last = followed(&mut states, PresenceState::is_registered);
    assert!(matches!(last, PresenceState::Registered { czxid: later } if later > czxid), "{last}");
    quiet(&mut states);
    there.shutdown().unwrap();
    assert_eq!(states.changed().unwrap(), Some(PresenceState::Closed));
    assert_eq!(states.changed().unwrap(), None);
}

#[test]
fn a_thread_follows_the_states_of_its_membership() {
    let server = server();
    let manager = connect(&server);
    let member = Group::new(&manager, "/groups/web").unwrap().join("a", "1").unwrap();
    assert_eq!(member.path().as_str(), "/groups/web/a");
    let czxid = member.registered_timeout(Timing::event()).unwrap();
    let mut states = member.watch();
    assert!(server.delete_node("/groups/web/a"));
    let back = |state| matches!(state, PresenceState::Registered { czxid: later } if later > czxid);
    followed(&mut states, back);
    quiet(&mut states);
    member.leave().unwrap();
    assert_eq!(states.changed().unwrap(), Some(PresenceState::Closed));
}

#[test]
fn a_call_of_a_registration_or_a_group_within_a_task_is_refused_unless_it_cannot_wait() {
    let server = server();
    let manager = connect(&server);
    let registration = Registration::register(&manager, "/workers/7", "").unwrap();
    registration.registered().unwrap();
    let group = Group::new(&manager, "/groups/web").unwrap();
    let member = group.join("a", "").unwrap();
    member.registered().unwrap();
    aside(async {
        assert!(is_refused(&Registration::register(&manager, "/workers/8", "")));
        assert!(is_refused(&registration.registered()));
        assert!(is_refused(&registration.set_data("x")));
        assert!(is_refused(&group.join("b", "")));
        assert!(is_refused(&group.members()));
        assert!(is_refused(&member.set_payload("x")));
        assert!(is_refused(&registration.watch().changed()));
        assert!(registration.state().is_registered() && member.state().is_registered());
        assert!(registration.watch().state().is_registered() && member.watch().state().is_registered());
        drop(member);
        registration.release().unwrap();
    });
}
