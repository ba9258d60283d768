//! An order is handled in steps, each of which takes the order's lock; so does the function that calls them
//! all.
//!
//! A step may be called alone, and then it must lock the order itself. Called by `checkout`, which has the
//! lock already, it takes it again: that is what a [`ReentrantMutex`] is for. Whose hold it is, an [`Owner`]
//! in scope says, so that the steps need no parameter for it. With a plain [`Mutex`] such a step would wait
//! for its own caller for ever; lockkeeper sees that and says so.
//!
//! `cargo run --example reentrant_order`, or `-- --connect host:port,…`

use std::process::ExitCode;

use clap::{Parser, value_parser};
use lockkeeper::error::WouldDeadlock;
use lockkeeper::{Error, Hold, Mutex, Owner, ReentrantMutex};
use lockkeeper_demos::fixture::{Common, Example, Failure, Fixture, Verdict, Worker, patiently, play};
use serde::{Deserialize, Serialize};

/// Handles orders in steps that lock the order themselves, called alone or by one that has it locked.
#[derive(Debug, Parser)]
#[command(name = "reentrant_order")]
struct ReentrantOrder {
    /// How many processes handle the same orders; every second one calls a step alone
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=64))]
    processes: u32,

    /// How many orders there are
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = value_parser!(u32).range(1..=10_000))]
    orders: u32,

    #[command(flatten)]
    common: Common,
}

/// The steps. Each is done once for an order, however often it is called.
const RESERVE: &str = "reserve";
const CHARGE: &str = "charge";

/// The observations of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    /// How often a step took a lock that its caller had.
    again: u32,
    /// The error of the step with a plain mutex.
    would_deadlock: Option<String>,
}

fn main() -> ExitCode {
    play::<ReentrantOrder>()
}

/// The whole order: no other process acts between its steps. Returns the number of nested acquires.
async fn checkout(worker: &Worker, order: u32) -> Result<u32, Error> {
    let lock = ReentrantMutex::new(worker.manager(), worker.path(&lock(order))?)?;
    let outer = lock.acquire_scoped().await?;
    let mut again = 0;
    for step in [RESERVE, CHARGE] {
        again += u32::from(take_step(worker, order, step).await?);
    }
    // The steps are done even if the release fails: lockkeeper continues to delete the node.
    let _ = outer.release().await;
    Ok(again)
}

/// One step, whether or not the caller has the order locked. Returns whether it had.
async fn take_step(worker: &Worker, order: u32, step: &str) -> Result<bool, Error> {
    let lock = ReentrantMutex::new(worker.manager(), worker.path(&lock(order))?)?;
    // The owner's second hold costs no round trip, and rests on the same node as the first.
    let guard = lock.acquire_scoped().await?;
    let is_again = Owner::current().is_some_and(|owner| lock.hold_count(&owner) > 1);
    once(worker, guard.hold(), order, step).await?;
    let _ = guard.release().await;
    Ok(is_again)
}

/// The mistake: the caller holds the lock, and the step requests it like any other contender. Returns its
/// error.
async fn mistake(worker: &Worker, order: u32) -> Result<Option<String>, Error> {
    let lock = ReentrantMutex::new(worker.manager(), worker.path(&lock(order))?)?;
    let owner = Owner::new("mistaken");
    let outer = lock.acquire(&owner).await?;
    let mistaken = owner.scope(take_step_with_plain_mutex(worker, order, RESERVE)).await;
    outer.release().await?;
    match mistaken {
        Err(error) if error.recipe::<WouldDeadlock>().is_some() => Ok(Some(error.to_string())),
        _ => Ok(None),
    }
}

/// A step that uses a plain mutex by mistake.
async fn take_step_with_plain_mutex(worker: &Worker, order: u32, step: &str) -> Result<(), Error> {
    let guard = Mutex::new(worker.manager(), worker.path(&lock(order))?)?.acquire().await?;
    once(worker, guard.hold(), order, step).await?;
    Ok(guard.release().await?)
}

/// Records the step as done, unless it is recorded already.
async fn once(worker: &Worker, hold: &Hold, order: u32, step: &str) -> Result<(), Error> {
    let done = worker.znodes().children(&worker.path(&steps(order))?).await?.unwrap_or_default();
    if !done.iter().any(|name| name.starts_with(step)) {
        let note = worker.path(&format!("{}/{step}-", steps(order)))?;
        hold.txn().create_sequential(note, worker.number().to_string().into_bytes()).commit().await?;
    }
    Ok(())
}

impl Example for ReentrantOrder {
    type News = Seen;

    fn common(&self) -> &Common {
        &self.common
    }

    async fn work(&self, worker: &Worker) -> Result<(), Failure> {
        let mut seen = Seen::default();
        for order in 1..=self.orders {
            let owner = Owner::new(&format!("process {}, order {order}", worker.number()));
            if worker.number().is_multiple_of(2) {
                owner.scope(patiently(|| take_step(worker, order, CHARGE))).await?;
            } else {
                seen.again += owner.scope(patiently(|| checkout(worker, order))).await?;
            }
        }
        seen.would_deadlock = mistake(worker, 1).await?;
        worker.tell(&seen)
    }

    async fn lead(&self, fixture: &mut Fixture<Seen>) -> Result<Verdict, Failure> {
        for order in 1..=self.orders {
            fixture.set_up(&steps(order), b"").await?;
        }
        fixture.start(self.processes).await?;
        println!("{} processes handle the same {} orders", self.processes, self.orders);
        let seen = fixture.rest().await?;
        let again: u32 = seen.iter().map(|(_, seen)| seen.again).sum();
        let reported: Vec<&String> =
            seen.iter().filter_map(|(_, seen)| seen.would_deadlock.as_ref()).collect();
        let mut once = 0;
        for order in 1..=self.orders {
            let path = fixture.path(&steps(order))?;
            let notes = fixture.znodes().children(&path).await?.unwrap_or_default();
            let count = |step| notes.iter().filter(|note| note.starts_with(step)).count();
            once += u32::from(count(RESERVE) == 1 && count(CHARGE) == 1);
        }
        println!("steps took {again} times a lock that their caller had");
        if let Some(reported) = reported.first() {
            println!("a step with a plain mutex failed: {reported}");
        }
        Ok(Verdict::of(
            once == self.orders && again > 0 && reported.len() == self.processes as usize,
            format!(
                "{once} of {} orders reserved and charged once, {again} locks taken again by their owners, \
                 {} of {} plain mutexes said they would deadlock",
                self.orders,
                reported.len(),
                self.processes
            ),
        ))
    }
}

fn lock(order: u32) -> String {
    format!("locks/{order}")
}

fn steps(order: u32) -> String {
    format!("orders/{order}")
}
