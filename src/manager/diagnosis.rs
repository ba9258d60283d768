//! Looks at the servers while none of them grants a session, and logs the causes.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use parking_lot::Mutex;
use tracing::warn;

use crate::wire::{Backend, ServerFault};

/// The time without a session after which the servers are looked at. Most sessions are opened sooner.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// The first pause between two looks. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// What the last look at the servers has found.
#[derive(Debug, Default)]
pub(super) struct Diagnosis(Mutex<Vec<ServerFault>>);

impl Diagnosis {
    /// Does `work`, which opens a session. While that takes long, one warning for each server that cannot be
    /// used is logged after each look.
    pub(super) async fn during<T>(&self, backend: &dyn Backend, work: impl Future<Output = T>) -> T {
        self.0.lock().clear();
        match select(pin!(work), pin!(self.look_again_and_again(backend))).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn look_again_and_again(&self, backend: &dyn Backend) -> Infallible {
        tokio::time::sleep(FIRST_LOOK).await;
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(look) = backend.look_at_servers() else { return pending().await };
            let faults = look.await;
            for ServerFault { server, cause } in &faults {
                warn!(server, cause, next_look = ?pause, "no session yet: a server cannot be used");
            }
            *self.0.lock() = faults;
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// The causes by server. `None` if no look has found any.
    pub(super) fn cause(&self) -> Option<String> {
        let faults = self.0.lock();
        let of = |fault: &ServerFault| format!("{}: {}", fault.server, fault.cause);
        (!faults.is_empty()).then(|| faults.iter().map(of).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;
    use crate::wire::{Reply, Wire};

    /// Counts the looks.
    #[derive(Debug, Default)]
    struct Looks(AtomicUsize);

    impl Backend for Looks {
        fn open(&self) -> Reply<Arc<dyn Wire>> {
            Box::pin(pending())
        }

        fn look_at_servers(&self) -> Option<BoxFuture<'static, Vec<ServerFault>>> {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let fault = ServerFault { server: "a:1".to_owned(), cause: format!("look {number}") };
            Some(std::future::ready(vec![fault]).boxed())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn servers_are_looked_at_within_two_seconds_and_then_ever_less_often() {
        let mut at = Vec::new();
        for seconds in [2, 3, 4, 8, 16, 32, 64, 128, 192] {
            let (diagnosis, looks) = (Diagnosis::default(), Looks::default());
            diagnosis.during(&looks, tokio::time::sleep(Duration::from_secs(seconds))).await;
            at.push(looks.0.load(Ordering::Relaxed));
        }
        assert_eq!(at, [1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let (diagnosis, looks) = (Diagnosis::default(), Looks::default());
        diagnosis.during(&looks, tokio::time::sleep(Duration::from_millis(900))).await;
        assert_eq!((looks.0.load(Ordering::Relaxed), diagnosis.cause()), (0, None));
        diagnosis.during(&looks, tokio::time::sleep(Duration::from_millis(1_100))).await;
        assert_eq!(diagnosis.cause().as_deref(), Some("a:1: look 1"));
    }
}
