//! How a request is sent that some servers do not know.

use futures::future::ready;

use super::handle::Session;
use super::hang_ups::Suspect;
use super::suspect_requests::Unanswered;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Reply, WireError};

impl Session {
    /// Sends a request that some servers do not know, in its turn.
    pub(crate) async fn send_suspect<T: Send + 'static>(
        &self,
        suspect: Suspect,
        deadline: Deadline,
        send: impl FnOnce() -> Reply<T>,
    ) -> Reply<T> {
        let mut waits = true;
        let (number, reply) = loop {
            // Armed before the state is read, so no end of a request is missed.
            let ended = self.suspects().ended();
            {
                // Locked until it is sent: the numbers tell the order.
                let mut requests = self.suspects().lock();
                let over = self.connections().seen_link().filter(|_| self.loss().is_none());
                let Some(over) = over else { return Box::pin(ready(Err(self.over()))) };
                if self.hangs_up_on(suspect) {
                    let error = format!("the servers close the connection on {suspect}");
                    return Box::pin(ready(Err(WireError::Broken(error))));
                }
                let is_known = || self.suspects().is_known(suspect);
                if !waits || !requests.is_in_flight(suspect) || is_known() {
                    break (requests.sent(suspect, over), send());
                }
            }
            tokio::select! {
                biased;
                () = ended => {}
                _ = self.ended() => {}
                () = deadline.passed() => return Box::pin(ready(Err(WireError::Timeout))),
                // A task may hold a request without polling it. Without a connection none is answered.
                () = tokio::time::sleep(fractions::retry_pause(self.timeout())) => {
                    waits = self.live_connection().is_none();
                }
            }
        };
        let in_flight = SuspectInFlight { session: self.clone(), number, how: Unanswered::Dropped };
        Box::pin(in_flight.until_answered(suspect, reply))
    }
}

/// Reports the end of a request, also if no task waits for its answer.
struct SuspectInFlight {
    session: Session,
    number: u64,
    how: Unanswered,
}

impl SuspectInFlight {
    async fn until_answered<T>(mut self, suspect: Suspect, reply: Reply<T>) -> Result<T, WireError> {
        let result = reply.await;
        match &result {
            Ok(_) | Err(WireError::Refused(_)) => self.session.suspects().answered(self.number, suspect),
            Err(WireError::Broken(_)) => self.how = Unanswered::Failed,
            Err(_) => {}
        }
        result
    }
}

impl Drop for SuspectInFlight {
    fn drop(&mut self) {
        let (session, present) = (&self.session, self.session.connections().seen_link());
        session.suspects().finished(self.number, self.how, present, session.now());
    }
}
