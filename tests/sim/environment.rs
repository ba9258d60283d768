use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper_core::BootInstant;
use lockkeeper_core::simulation::{Environment, Uuid};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::rng::Rng;

/// The machine of one client process: a clock of its own rate, names from the seed, and a gate that stops all
/// its tasks.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) number: usize,
    started: Instant,
    /// Parts per million by which the clock is fast.
    fast: i64,
    rng: Mutex<Rng>,
    gate: Mutex<Gate>,
    tasks: Mutex<Vec<AbortHandle>>,
}

#[derive(Debug, Default)]
struct Gate {
    is_frozen: bool,
    is_crashed: bool,
    /// When it was last opened.
    thawed: Option<Instant>,
    stopped: Vec<Waker>,
}

impl Process {
    pub(crate) fn new(number: usize, drift: u64, mut rng: Rng) -> Arc<Self> {
        let drift = drift.cast_signed();
        let fast = match rng.index(3) {
            0 => -drift,
            1 => drift,
            _ => rng.between(0, 2 * drift.cast_unsigned()).cast_signed() - drift,
        };
        let (gate, tasks) = (Mutex::default(), Mutex::default());
        Arc::new(Self { number, started: Instant::now(), fast, rng: Mutex::new(rng), gate, tasks })
    }

    pub(crate) fn freeze(&self) {
        self.gate.lock().is_frozen = true;
    }

    pub(crate) fn thaw(&self) {
        let mut gate = self.gate.lock();
        gate.is_frozen = false;
        gate.thawed = Some(Instant::now());
        for waker in gate.stopped.drain(..) {
            waker.wake();
        }
    }

    /// Ends all its tasks at their current await.
    pub(crate) fn crash(&self) {
        self.gate.lock().is_crashed = true;
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.gate.lock().is_crashed
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.gate.lock().is_frozen
    }

    /// Whether the process has been running for long enough that every task was polled.
    pub(crate) fn is_awake(&self) -> bool {
        let gate = self.gate.lock();
        !gate.is_frozen && gate.thawed.is_none_or(|thawed| thawed.elapsed() > Duration::from_millis(1))
    }

    /// Runs a task of this process.
    pub(crate) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        let task = tokio::spawn(Stoppable { process: Arc::clone(self), task: Box::pin(task) });
        self.tasks.lock().push(task.abort_handle());
        task
    }
}

/// A process is also its own host; shared, so that its tasks can be stopped.
#[derive(Debug)]
pub(crate) struct SimulatedHost(pub(crate) Arc<Process>);

impl Environment for SimulatedHost {
    fn now(&self) -> BootInstant {
        let micros = i64::try_from(self.0.started.elapsed().as_micros()).unwrap();
        // Away from zero, as a machine that has been up for a while.
        let local = micros + micros * self.0.fast / 1_000_000;
        BootInstant::at(Duration::from_secs(100_000) + Duration::from_micros(local.cast_unsigned()))
    }

    fn unique(&self) -> Uuid {
        let mut rng = self.0.rng.lock();
        Uuid::from_u64_pair(rng.throw(), rng.throw())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.0.run(task));
    }
}

/// A task that is not polled while its process is paused.
struct Stoppable<T> {
    process: Arc<Process>,
    task: BoxFuture<'static, T>,
}

impl<T> Future for Stoppable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut gate = self.process.gate.lock();
        if gate.is_crashed {
            return Poll::Pending;
        }
        if gate.is_frozen {
            if !gate.stopped.iter().any(|waker| waker.will_wake(context.waker())) {
                gate.stopped.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        drop(gate);
        self.task.as_mut().poll(context)
    }
}
