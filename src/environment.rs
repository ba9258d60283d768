//! The machine under a manager.
#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

use std::fmt::Debug;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::time::boot::{BootInstant, system_time};

/// What a manager takes from the machine it runs on: the time, chance and a scheduler. The machine itself, or
/// a simulation.
pub trait Environment: Debug + Send + Sync + 'static {
    /// The present instant, on the clock of leases.
    fn now(&self) -> BootInstant;
    /// A number that nobody else has, ever.
    fn unique(&self) -> Uuid;
    /// Runs the task behind a manager.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// This machine: `CLOCK_BOOTTIME` where there is one, and tokio.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThisMachine;

impl Environment for ThisMachine {
    fn now(&self) -> BootInstant {
        system_time()
    }

    fn unique(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}
