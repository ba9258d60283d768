//! Contention without a deadlock.

use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper::inspect::{Deadlocks, Survey};
use lockkeeper::locks::Deadline;
use lockkeeper::{ConnectionManager, Error, Mutex, Owner, RwLock, Semaphore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::Fixture;

const CLIENTS: usize = 4;
const TASKS: usize = 12;
const LOCKS: usize = 6;

/// How many looks a short run takes. With `LOCKKEEPER_SOAK` it looks for `LOCKKEEPER_DEADLOCK_MINUTES` (60).
const LOOKS: usize = 60;

/// How often a long run prints what it has seen.
const LINE: Duration = Duration::from_secs(300);

/// Takes some of the locks in the order of their paths, which no circle can come of.
async fn take_some(manager: &ConnectionManager, owner: &Owner, mut rng: StdRng) -> Result<(), Error> {
    let mut held: Vec<Box<dyn Send>> = Vec::new();
    for number in 0..LOCKS {
        if rng.random_bool(0.5) {
            continue;
        }
        let path = format!("/locks/{number}");
        held.push(match number % 3 {
            0 => Box::new(Mutex::new(manager, path)?.acquire().await?),
            1 => {
                let lock = RwLock::new(manager, path)?.for_owner(owner);
                if rng.random_bool(0.5) {
                    Box::new(lock.read().await?)
                } else {
                    Box::new(lock.write().await?)
                }
            }
            _ => Box::new(Semaphore::new(manager, path, 2)?.acquire().await?),
        });
    }
    Ok(())
}

/// One look, and the number of waits that it saw.
async fn look(observer: &ConnectionManager) -> Result<(usize, Deadlocks), Error> {
    let survey = Survey::below(observer, "/locks").await?;
    let waiting = survey.locks().iter().map(|lock| lock.waiters().count()).sum();
    Ok((waiting, Deadlocks::among(observer, survey.locks(), Duration::ZERO).await?))
}

fn soak_time() -> Option<Duration> {
    std::env::var_os("LOCKKEEPER_SOAK")?;
    let minutes = std::env::var("LOCKKEEPER_DEADLOCK_MINUTES").ok().and_then(|text| text.parse().ok());
    Some(Duration::from_secs(60 * minutes.unwrap_or(60)))
}

#[tokio::test]
async fn random_contention_in_one_order_is_never_a_deadlock() {
    let fixture = Fixture::start(CLIENTS).await;
    let until = soak_time().map(Deadline::after);
    let done = CancellationToken::new();
    let work = (0..TASKS).map(|number| {
        let (manager, done) = (fixture.managers[number % CLIENTS].clone(), done.clone());
        let owner = Owner::new(&format!("task {number}"));
        async move {
            let mut rounds = 0_u64;
            while !done.is_cancelled() {
                let rng = StdRng::seed_from_u64(rounds * 1_000 + number as u64);
                match owner.scope(take_some(&manager, &owner, rng)).await {
                    // A session of an hour may be lost: the owner releases what it has, and takes the next
                    // locks.
                    Err(error) if !error.is_transient() && !error.is_lost() => return Err(error),
                    _ => rounds += 1,
                }
            }
            Ok::<u64, Error>(rounds)
        }
    });
    let work = tokio::spawn(try_join_all(work));
    let (mut looks, mut unanswered, mut waits) = (0, 0, 0);
    let mut next_line = Deadline::after(LINE);
    while until.map_or(looks < LOOKS, |until| !until.has_passed()) {
        match look(&fixture.observer).await {
            Ok((waiting, deadlocks)) => {
                assert_eq!(deadlocks.found().count(), 0, "look {looks}: {deadlocks}");
                (looks, waits) = (looks + 1, waits + waiting);
            }
            Err(error) if error.is_transient() => unanswered += 1,
            Err(error) => panic!("{error}"),
        }
        if next_line.has_passed() {
            println!("{looks} looks at {waits} waits so far, {unanswered} without an answer, 0 alarms");
            next_line = Deadline::after(LINE);
        }
    }
    done.cancel();
    let rounds: u64 = work.await.unwrap().unwrap().iter().sum();
    println!(
        "{looks} looks at {waits} waits, {unanswered} without an answer, beside {rounds} rounds: 0 alarms"
    );
    assert!(waits > 0 && rounds > 0, "{waits} waits, {rounds} rounds");
}
