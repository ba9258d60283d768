//! Leaders and candidates, for threads.

use std::ops::ControlFlow;
use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::blocking::Election;
use lockkeeper::election::CandidateState;
use lockkeeper::manager::HoldEvent;
use lockkeeper_tests::Timing;

use crate::support::{connect, contenders, server};

#[test]
fn a_thread_leads_in_terms_and_another_one_observes() {
    let server = server();
    let (leading, observing) = (connect(&server), connect(&server));
    let mut leaders = Election::new(&observing, "/election", "observer").unwrap().observe().unwrap();
    assert_eq!(leaders.changed().unwrap(), None);
    let quiet = leaders.changed_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(quiet.is_timeout() && quiet.to_string().contains("another leader"), "{quiet}");
    let election = Election::new(&leading, "/election", "one").unwrap();
    let mut tokens = Vec::new();
    let led = election.lead(|leadership| {
        let token = leadership.fencing_token();
        tokens.push(token);
        assert!(leadership.is_valid());
        // The term lasts until the observer has seen it.
        while leaders.state().map(|leader| leader.fencing_token()) != Some(token) {
            leaders.changed_timeout(Timing::event()).unwrap();
        }
        if tokens.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break("done") }
    });
    assert_eq!(led.unwrap(), "done");
    assert!(tokens.len() == 3 && tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
    assert_eq!(contenders(&server, "/election"), 0);
}

#[test]
fn a_thread_follows_its_own_candidate() {
    let server = server();
    let election = Election::new(&connect(&server), "/election", "one").unwrap();
    let mut state = election.state();
    assert_eq!(state.changed().unwrap(), CandidateState::Idle);
    let quiet = state.changed_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(quiet.is_timeout() && quiet.to_string().contains("another state"), "{quiet}");
    let leadership = election.campaign().unwrap();
    let leads = CandidateState::Leading { fencing_token: leadership.fencing_token() };
    assert_eq!(state.changed_timeout(Timing::event()).unwrap(), leads);
    leadership.resign().unwrap();
    assert_eq!(state.state(), CandidateState::Idle);
}

#[test]
fn a_thread_receives_the_events_of_a_leadership() {
    let server = server();
    let election = Election::new(&connect(&server), "/election", "one").unwrap();
    let mut events = election.events();
    let quiet = events.next_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(&quiet, Error::Timeout { path, .. } if path.as_str() == "/election"), "{quiet}");
    let leadership = election.campaign().unwrap();
    let path = leadership.path().to_owned();
    let granted = HoldEvent::Acquired { path: path.clone(), token: leadership.fencing_token() };
    assert_eq!(events.next().unwrap(), Some(granted));
    assert!(election.is_led_here());
    let seen = election.inspect().unwrap();
    assert_eq!(seen.holders().map(|holder| holder.path()).collect::<Vec<_>>(), [&path]);
    leadership.resign().unwrap();
    assert_eq!(events.next_timeout(Timing::event()).unwrap(), Some(HoldEvent::Released { path }));
    assert!(!election.is_led_here());
}
