//! What `src/sync.rs` has, of loom.

use std::future::poll_fn;
use std::task::Poll;

pub(crate) use loom::sync::Arc;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A lock without poison, as `parking_lot` has it.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Loom has none: it knows of the flag, and switches threads only there.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.is_set.load(Ordering::Acquire).then(|| self.value.get()).flatten()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        if self.is_set.swap(true, Ordering::AcqRel) { Err(value) } else { self.value.set(value) }
    }
}

/// Keeps one wake-up, as tokio's does, for one task.
#[derive(Debug)]
pub(crate) struct Notify {
    has_permit: AtomicBool,
    waker: loom::future::AtomicWaker,
}

impl Default for Notify {
    fn default() -> Self {
        Self { has_permit: AtomicBool::new(false), waker: loom::future::AtomicWaker::new() }
    }
}

impl Notify {
    pub(crate) fn notify_one(&self) {
        self.has_permit.swap(true, Ordering::AcqRel);
        self.waker.wake();
    }

    pub(crate) async fn notified(&self) {
        poll_fn(|context| {
            self.waker.register_by_ref(context.waker());
            match self.has_permit.swap(false, Ordering::AcqRel) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}
