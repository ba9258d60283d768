//! Threads that pass one node among themselves.

use std::sync::Mutex as Plain;
use std::thread;
use std::time::Duration;

use lockkeeper::blocking::Mutex;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::ConfigError;
use lockkeeper::{Error, FencingToken};
use lockkeeper_tests::Timing;

use crate::support::{connect, contenders, server, until};

/// A third of the session timeout: no hand-off ends by its time limit.
const LONG: Duration = Duration::from_secs(6);

const THREADS: usize = 4;
const ROUNDS: usize = 10;

#[test]
fn threads_hand_one_node_on_among_themselves_with_growing_tokens() {
    let server = server();
    let manager = connect(&server);
    let keep = HandOffPolicy::default().max_time(LONG).idle_time(LONG);
    let mutex = Mutex::new(&manager, "/lock").unwrap().with_handoff(keep).unwrap();
    let tokens = Plain::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                for round in 0..ROUNDS {
                    let guard = mutex.acquire_timeout(Timing::event()).unwrap();
                    assert!(guard.is_valid());
                    tokens.try_lock().expect("two are inside").push(guard.fencing_token());
                    match round % 2 {
                        0 => drop(guard),
                        _ => guard.release().unwrap(),
                    }
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    let handovers: Vec<u32> = tokens.iter().map(|token: &FencingToken| token.handover()).collect();
    assert_eq!(handovers, (0..(THREADS * ROUNDS) as u32).collect::<Vec<_>>());
    assert!(tokens.iter().all(|token| token.as_u64() == tokens[0].as_u64()), "{tokens:?}");
    // It lingers, for no longer than the last clone is there.
    assert_eq!(contenders(&server, "/lock"), 1);
    drop(mutex);
    until("the end of the node", || contenders(&server, "/lock") == 0);
}

#[test]
fn a_thread_that_gives_up_waited_for_its_own_process_and_a_shutdown_ends_its_wait() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap().with_handoff(HandOffPolicy::default()).unwrap();
    let _held = mutex.acquire().unwrap();
    let refused = mutex.acquire_timeout(Duration::from_millis(10)).unwrap_err();
    let others = "waiting for other tasks of this process, 1 ahead";
    assert!(refused.is_timeout() && refused.to_string().contains(others), "{refused}");
    assert!(mutex.try_acquire().unwrap().is_none());
    assert_eq!(contenders(&server, "/lock"), 1, "a waiter of the same process has no node");
    thread::scope(|threads| {
        let waiting = threads.spawn(|| mutex.acquire());
        manager.shutdown().unwrap();
        assert!(waiting.join().unwrap().unwrap_err().is_closed());
    });
}

#[test]
fn what_cannot_be_kept_so_is_refused() {
    let server = server();
    let manager = connect(&server);
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let refused = mutex.with_handoff(HandOffPolicy::default().max_handoffs(0));
    assert!(matches!(refused, Err(Error::Config(ConfigError::Setting { name: "max_handoffs", .. }))));
}
