//! The queues of locks, and the events of locks and managers, for threads.

use std::time::Duration;

use lockkeeper::blocking::{MultiLock, Mutex, ReentrantMutex, RwLock, Semaphore, ZooKeeperLock};
use lockkeeper::manager::{HoldEvent, State};
use lockkeeper::{Error, Inspection, Owner, ZnodePath};
use lockkeeper_tests::Timing;

use crate::support::{aside, connect, is_refused, server};

/// The paths of the nodes of the holders.
fn holders(seen: &Inspection) -> Vec<&ZnodePath> {
    seen.holders().map(|holder| holder.path()).collect()
}

#[test]
fn a_thread_reads_the_queue_of_each_lock() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let mutex = Mutex::new(&here, "/mutex").unwrap();
    let guard = mutex.acquire().unwrap();
    // A place in the queue, which no method of a blocking lock returns.
    let ticket = mutex.call(async |mutex| mutex.enqueue().await).unwrap();
    let seen = Mutex::new(&there, "/mutex").unwrap().inspect().unwrap();
    assert_eq!((holders(&seen), seen.waiters().count()), (vec![guard.path()], 1));
    drop(ticket);

    let reentrant = ReentrantMutex::new(&here, "/reentrant").unwrap();
    let again = reentrant.acquire().unwrap();
    assert_eq!(holders(&reentrant.inspect().unwrap()), [again.path()]);

    let owner = Owner::new("checkout");
    let prices = RwLock::new(&here, "/prices").unwrap().for_owner(&owner);
    let read = prices.read().unwrap();
    assert_eq!(holders(&prices.inspect().unwrap()), [read.path()]);
    assert_eq!((prices.read_hold_count(&owner), prices.write_hold_count(&owner)), (1, 0));

    let licences = Semaphore::new(&here, "/licences", 3).unwrap();
    let lease = licences.acquire_many(2).unwrap();
    let seen = licences.inspect().unwrap();
    assert_eq!((seen.holders().count(), seen.free()), (2, Some(1)));

    let other = Mutex::new(&here, "/other").unwrap();
    let both = MultiLock::builder().lock(&mutex).lock(&other).build().unwrap();
    let seen = both.inspect().unwrap();
    assert_eq!(seen.iter().map(holders).collect::<Vec<_>>(), [vec![guard.path()], Vec::new()]);
    let any: [&dyn ZooKeeperLock; 2] = [&mutex, &both];
    assert_eq!(any.map(|lock| (lock.is_held(), lock.inspect().unwrap().len())), [(true, 1), (false, 2)]);
    aside(async {
        assert!(is_refused(&mutex.inspect()) && is_refused(&any[1].inspect()));
        assert!(mutex.is_held());
    });
    drop((lease, read));
}

#[test]
fn a_thread_receives_the_events_of_a_lock() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let mut events = mutex.events();
    let quiet = events.next_timeout(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(&quiet, Error::Timeout { path, .. } if path.as_str() == "/lock"), "{quiet}");
    let guard = mutex.acquire().unwrap();
    let path = guard.path().to_owned();
    let granted = HoldEvent::Acquired { path: path.clone(), token: guard.fencing_token() };
    assert_eq!(events.next().unwrap(), Some(granted));
    aside(async { assert!(is_refused(&events.next())) });
    guard.release().unwrap();
    assert_eq!(events.next_timeout(Timing::event()).unwrap(), Some(HoldEvent::Released { path }));
}

#[test]
fn a_thread_follows_the_state_of_a_manager_to_its_end() {
    let server = server();
    let manager = connect(&server);
    let mut transitions = manager.transitions();
    assert!(transitions.next_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    manager.connected().unwrap();
    aside(async { assert!(is_refused(&manager.connected()) && is_refused(&transitions.next())) });
    server.drop_connections();
    assert!(matches!(transitions.next().unwrap().unwrap().state, State::Suspended(_)));
    manager.connected_timeout(Timing::event()).unwrap();
    assert!(matches!(transitions.next().unwrap().unwrap().state, State::Connected(_)));
    manager.shutdown().unwrap();
    let mut last = None;
    while let Some(transition) = transitions.next_timeout(Timing::event()).unwrap() {
        last = Some(transition.state);
    }
    assert_eq!(last, Some(State::Closed));
    assert!(manager.connected().unwrap_err().is_closed());
}
