use std::time::Duration;

use lockkeeper::error::Refusal;
use lockkeeper::{ConnectionManager, Counter, Error};
use tokio::time::sleep;

use super::cancelled::Cancelled;
use crate::oracle::{NUMBER, Oracle};
use crate::rng::Rng;
use crate::world::World;

/// A task that counts, together with those of the other processes.
pub(super) struct Adder {
    pub(super) name: String,
    pub(super) world: World,
    pub(super) oracle: Oracle,
    pub(super) manager: ConnectionManager,
    pub(super) rng: Rng,
}

impl Adder {
    /// Adds ones until the faults have ended, and then until one is added.
    pub(super) async fn add(mut self) {
        let counter = Counter::new(&self.manager, NUMBER).expect("a path");
        let longest = self.world.plan().timeout / 10;
        loop {
            sleep(Duration::from_millis(self.rng.between(0, longest))).await;
            let is_last = self.world.is_healing();
            let polls = if !is_last && self.rng.percent(20) { self.rng.between(1, 6) } else { u64::MAX };
            let call = self.oracle.begin_addition();
            let reads = self.rng.percent(30);
            let calls = async {
                match reads {
                    true => tokio::join!(counter.increment(), counter.get()),
                    false => (counter.increment().await, Ok(0)),
                }
            };
            let Some((added, read)) = Cancelled::after(polls, calls).await else { continue };
            if let Err(error @ Error::Refused { .. }) = &read {
                let name = &self.name;
                self.oracle
                    .breach(&self.world, format!("counter: a read of {name} beside a change: {error}"));
            }
            self.world.note(|| format!("{} added: {added:?}", self.name));
            let is_added = added.is_ok();
            match &added {
                Err(error) if error.is_closed() => return self.oracle.end_addition(call, &added),
                Err(Error::Refused { refusal: Refusal::NoAuth | Refusal::SessionFull, .. }) => {}
                Err(error) if !error.is_transient() && !error.outcome_unknown() && !error.is_timeout() => {
                    self.oracle.breach(&self.world, format!("counter: {}: {error}", self.name));
                }
                _ => {}
            }
            self.oracle.end_addition(call, &added);
            if is_last && is_added {
                return;
            }
        }
    }
}
