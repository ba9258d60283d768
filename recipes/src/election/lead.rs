//! Terms of leadership, one after the other.

use std::ops::ControlFlow;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Error};
use tracing::{debug, info};

use super::Leadership;
use super::handle::Election;
use crate::lock::AcquiredAt;

/// The shortest pause between two campaigns, after a term that was shorter.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Election {
    /// Leads again and again: campaigns, runs `work` while this participant leads, and campaigns again when
    /// `work` has returned [`ControlFlow::Continue`] or the leadership was lost. Ends when `work` returns
    /// [`ControlFlow::Break`], with its value.
    ///
    /// One term is one call of `work`. Its future is dropped when the leadership is lost, before another
    /// participant leads: it is checked before each poll, as by [`Guard::run`](crate::Guard::run). When
    /// `work` returns, this participant resigns, and queues at the end. Let no clone of the leadership
    /// outlive `work`: the participant resigns when the last one is dropped, and its next campaign waits
    /// until then. A term shorter than the present pause, 50 ms at first, is followed by the rest of that
    /// pause, and the pause doubles up to 5 s; a longer term sets it back.
    ///
    /// A [shutdown](lockkeeper_core::ConnectionManager::shutdown_within) that leaves holders time does not
    /// end `work`. Let `work` end by itself when
    /// [`ConnectionManager::closing`](lockkeeper_core::ConnectionManager::closing) resolves.
    ///
    /// # Panics
    ///
    /// A panic of `work` is passed on. The participant resigns in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] after a shutdown has begun. Otherwise as [`campaign`](Self::campaign), for an
    /// error that another try does not change. A resignation that the server has not confirmed is no error:
    /// the node is deleted in the background.
    ///
    /// # Session loss
    ///
    /// The term ends, and the next one may begin in the next session.
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work` and resigns. No node is left behind.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::ops::ControlFlow;
    /// use lockkeeper::Election;
    ///
    /// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
    /// let mut terms = 0;
    /// let led = election
    ///     .lead(|leadership| {
    ///         terms += 1;
    ///         async move {
    ///             println!("leading, fenced by {}", leadership.fencing_token());
    ///             // Write the plan by leadership.txn().
    ///             if terms < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(terms) }
    ///         }
    ///     })
    ///     .await?;
    /// assert_eq!(led, 2);
    /// assert!(election.candidates().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a spawned task, `work` is a closure that returns an `async move` block, and clones for each term
    /// what the block uses. An `async move |leadership|` closure does not compile there: its future borrows
    /// what the closure has captured.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::ops::ControlFlow;
    /// use lockkeeper::Election;
    ///
    /// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
    /// let (plans, mut planned) = tokio::sync::mpsc::channel(8);
    /// let leading = tokio::spawn(async move {
    ///     election
    ///         .lead(move |leadership| {
    ///             let plans = plans.clone();
    ///             async move {
    ///                 let sent = plans.send(leadership.fencing_token()).await;
    ///                 if sent.is_ok() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    ///             }
    ///         })
    ///         .await
    /// });
    /// println!("planned under {:?}", planned.recv().await);
    /// leading.await??;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn lead<T, F>(&self, work: impl FnMut(Arc<Leadership>) -> F) -> impl Future<Output = Result<T, Error>>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        let place = Location::caller();
        self.lead_at(place, work)
    }

    async fn lead_at<T, F>(
        &self,
        place: &'static Location<'static>,
        mut work: impl FnMut(Arc<Leadership>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        let manager = self.queue.manager();
        let mut pauses = TermPauses::default();
        loop {
            let begun = manager.now();
            match self.campaign_until(Deadline::never()).await {
                Ok(leadership) => {
                    let begun = manager.now();
                    let leadership = Arc::new(leadership.acquired_at(place));
                    let ended = leadership.run(work(Arc::clone(&leadership))).await;
                    let lasted = manager.now().since(begun);
                    match ended {
                        Ok(ControlFlow::Break(value)) => {
                            self.end_term(leadership).await;
                            return Ok(value);
                        }
                        Ok(ControlFlow::Continue(())) => self.end_term(leadership).await,
                        Err(lost) => {
                            info!(path = %self.whole_path(), %lost, ?lasted, "the term has ended");
                            drop(leadership);
                        }
                    }
                    self.pause(pauses.after(lasted)).await;
                }
                Err(error) if error.is_transient() => {
                    debug!(path = %self.whole_path(), %error, "campaigning again");
                    self.pause(pauses.after(manager.now().since(begun))).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn end_term(&self, leadership: Arc<Leadership>) {
        // Otherwise the last clone resigns, when it is dropped. Until then the next campaign waits behind it.
        let Some(leadership) = Arc::into_inner(leadership) else { return };
        if let Err(error) = leadership.resign().await {
            info!(path = %self.whole_path(), %error, "the resignation is not confirmed");
        }
    }

    /// Pauses, but not beyond the beginning of a shutdown.
    pub(crate) async fn pause(&self, pause: Duration) {
        tokio::select! {
            biased;
            () = self.queue.manager().closing() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The pauses between campaigns.
#[derive(Debug)]
pub(crate) struct TermPauses {
    next: Duration,
}

impl Default for TermPauses {
    fn default() -> Self {
        Self { next: PAUSE_MIN }
    }
}

impl TermPauses {
    /// The pause after a term that lasted this long.
    pub(crate) fn after(&mut self, lasted: Duration) -> Duration {
        let left = self.next.saturating_sub(lasted);
        self.next = if left.is_zero() { PAUSE_MIN } else { (self.next * 2).min(PAUSE_MAX) };
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_after_short_terms_only() {
        let ms = Duration::from_millis;
        let mut pauses = TermPauses::default();
        for (lasted, pause) in [(0, 50), (20, 80), (0, 200), (400, 0), (10, 40), (100, 0), (50, 0), (49, 1)] {
            assert_eq!(pauses.after(ms(lasted)), ms(pause), "after {lasted}");
        }
        let longest = (0..20).map(|_| pauses.after(Duration::ZERO)).max();
        assert_eq!(longest, Some(PAUSE_MAX));
    }
}
