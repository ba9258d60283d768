//! The work under a lock: a pause that is as long as it says.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::Outcome;
use crate::measurements::now;

/// A pause that ends at this time.
type Pause = (Instant, oneshot::Sender<()>);

/// Sleeps for this time, to some hundredth of a millisecond: by a thread that the system wakes. The timers of
/// the runtime have steps of a millisecond, and Java's `Thread.sleep` has not, so a load of three
/// milliseconds would not be the same for both.
pub(crate) async fn exactly(span: Duration) -> Outcome<()> {
    static TIMER: OnceLock<Sender<Pause>> = OnceLock::new();
    let timer = TIMER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || end_each(&receiver));
        sender
    });
    let (sender, ended) = oneshot::channel();
    timer.send((now() + span, sender)).map_err(|_| "the timer has ended")?;
    Ok(ended.await?)
}

/// Ends each pause at its time. Few are in progress: each is the work of a holder.
fn end_each(pauses: &Receiver<Pause>) {
    let mut pending: Vec<Pause> = Vec::new();
    loop {
        let next = pending.iter().map(|(due, _)| due.saturating_duration_since(now())).min();
        match pauses.recv_timeout(next.unwrap_or(Duration::MAX)) {
            Ok(pause) => pending.push(pause),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for (_, sender) in pending.extract_if(.., |(due, _)| *due <= now()) {
            // Nobody waits for a pause whose load was ended.
            let _ = sender.send(());
        }
    }
}
