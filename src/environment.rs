//! The machine that a manager runs on.
#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

use std::fmt::Debug;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::time::boot::BootInstant;

/// The services that a manager needs from its machine: the time, random numbers and a scheduler. The
/// simulation has its own.
pub trait Environment: Debug + Send + Sync + 'static {
    /// The present instant, on the clock of leases.
    fn now(&self) -> BootInstant;
    /// A number that is unique for ever.
    fn unique(&self) -> Uuid;
    /// Runs the task of a manager.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// The real machine: `CLOCK_BOOTTIME` where it exists, and tokio.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThisMachine;

impl Environment for ThisMachine {
    fn now(&self) -> BootInstant {
        BootInstant::now()
    }

    fn unique(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}
