use std::future::pending;
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};

use super::StartError;

static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);

/// The runtime of all test servers of this process: one thread of our own.
///
/// The caller's runtime will not do. A test that blocks it, pauses its clock or ends it must not stop its
/// server from answering.
pub(super) fn handle() -> Result<Handle, StartError> {
    let mut slot = RUNTIME.lock();
    if let Some(handle) = slot.as_ref() {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(StartError::Runtime)?;
    let handle = runtime.handle().clone();
    let serve = move || runtime.block_on(pending::<()>());
    thread::Builder::new()
        .name("lockkeeper-testserver".to_owned())
        .spawn(serve)
        .map_err(StartError::Runtime)?;
    Ok(slot.insert(handle).clone())
}
