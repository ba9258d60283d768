//! The means by which threads share state: locks, flags and wake-ups. Files that take them from here, and
//! nothing else from the crate, are also compiled by `tests/threads`, which puts loom's types in their place
//! and runs every interleaving.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, OnceLock};

pub(crate) use parking_lot::Mutex;
pub(crate) use tokio::sync::Notify;
