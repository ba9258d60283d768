//! What a fleet does once: terms of leaders, slots of a schedule, the value of a cell.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{Election, OnceCell, Schedule};
use lockkeeper::{CandidateState, Error, HoldEvent, InitError};
use lockkeeper_tests::Timing;

use crate::support::{connect, contenders, server, until};

#[test]
fn a_thread_leads_in_terms_and_another_one_observes() {
    let server = server();
    let (leading, observing) = (connect(&server), connect(&server));
    let mut leaders = Election::new(&observing, "/election", "observer").unwrap().observe().unwrap();
    assert_eq!(leaders.leader(), None);
    let quiet = leaders.changed_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(quiet.is_timeout() && quiet.to_string().contains("another leader"), "{quiet}");
    let election = Election::new(&leading, "/election", "one").unwrap();
    let mut tokens = Vec::new();
    let led = election.lead(|leadership| {
        let token = leadership.fencing_token();
        tokens.push(token);
        assert!(leadership.is_valid());
        // The term lasts until the observer has seen it.
        while leaders.leader().map(|leader| leader.fencing_token()) != Some(token) {
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

#[test]
fn threads_of_several_managers_do_each_slot_once() {
    let server = server();
    let interval = Duration::from_millis(10);
    let schedules = [connect(&server), connect(&server)]
        .map(|manager| Schedule::new(&manager, "/schedule", interval).unwrap());
    let mut slots = thread::scope(|threads| {
        let work = |schedule: &Schedule| {
            let mut slots = Vec::new();
            for _ in 0..5 {
                let slot = schedule.due_timeout(Timing::event()).unwrap();
                slot.check().unwrap();
                slots.push(slot.begins());
                slot.done("by a thread").unwrap();
            }
            slots
        };
        let threads = schedules.each_ref().map(|schedule| threads.spawn(move || work(schedule)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    slots.sort();
    assert!(slots.len() == 10 && slots.is_sorted_by(|earlier, later| earlier < later), "{slots:?}");
    assert_eq!(schedules[0].interval(), interval);
    let seen = schedules[0].inspect().unwrap();
    assert_eq!(seen.last().map(|last| last.slot()), slots.last().copied());
    assert_eq!(seen.queue().contenders(), []);
}

#[test]
fn threads_initialise_a_cell_once() {
    let server = server();
    let managers = [connect(&server), connect(&server)];
    let cells = managers.each_ref().map(|manager| OnceCell::new(manager, "/cell").unwrap());
    let failed = cells[0].get_or_try_init(|| Err::<Vec<u8>, _>("no disk")).unwrap_err();
    assert!(matches!(failed, InitError::Failed("no disk")), "{failed}");
    assert_eq!(cells[0].get().unwrap(), None);
    let values = thread::scope(|threads| {
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let cell = &cells[number % 2];
                threads.spawn(move || cell.get_or_init(|| format!("by {number}").into_bytes()).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    assert_eq!(cells[1].wait().unwrap(), values[0]);
    // Their contenders are deleted in the background.
    until("nobody initialises the cell", || contenders(&server, "/cell/locks") == 0);
    assert_eq!(cells[1].inspect().unwrap().contenders(), []);
    managers[1].shutdown().unwrap();
    assert!(matches!(cells[1].get().unwrap_err(), Error::Closed));
}
