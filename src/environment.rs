//! The machine that a manager runs on.
#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::sleep;
use uuid::Uuid;

use crate::config::error::ConfigError;
use crate::error::Error;
use crate::time::boot::BootInstant;

/// The services that a manager needs from its machine: the time, random numbers and a scheduler. The
/// simulation has its own.
pub trait Environment: Debug + Send + Sync + 'static {
    /// The present instant, on the clock of leases.
    fn now(&self) -> BootInstant;
    /// A number that is unique for ever.
    fn unique(&self) -> Uuid;
    /// Runs a task of a manager, whatever runtime the caller runs on.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// The real machine: `CLOCK_BOOTTIME` where it exists, and the tokio runtime that the manager connected on.
///
/// A task of the manager serves all its users. On the runtime of one of them it would stop with that runtime.
#[derive(Clone, Debug)]
pub(crate) struct ThisMachine {
    runtime: Handle,
}

impl ThisMachine {
    /// With the caller's runtime.
    pub(crate) fn here() -> Result<Self, ConfigError> {
        let runtime = Handle::try_current().map_err(|_| ConfigError::NoRuntime)?;
        // tokio's timers panic where they are not enabled. An error is better.
        std::panic::catch_unwind(|| drop(sleep(Duration::ZERO))).map_err(|_| ConfigError::NoRuntime)?;
        Ok(Self { runtime })
    }
}

/// The time limit of a call needs a runtime, wherever the tasks of the manager run.
pub(crate) fn ensure_runtime() -> Result<(), Error> {
    Handle::try_current().map(drop).map_err(|_| Error::Config(ConfigError::NoRuntime))
}

impl Environment for ThisMachine {
    fn now(&self) -> BootInstant {
        BootInstant::now()
    }

    fn unique(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }
}
