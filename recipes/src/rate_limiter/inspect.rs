use lockkeeper_core::{ContenderInfo, Error, Role};

use super::RateLimiter;
use super::decide::{Start, decode};
use crate::inspection::{InspectedRecipe, Inspection, holders_first, waiting};

const RECIPE: InspectedRecipe =
    InspectedRecipe { name: "rate limiter", counted: Some("starts in the window") };

/// A start that was recorded. It occupies room in the window.
const START: Role = Role::Recipe("start");

impl RateLimiter {
    /// Returns the starts that count in the window, the waiters, and the number of free starts: a snapshot,
    /// see [`Inspection`]. It enters no queue, and needs only the right to read.
    ///
    /// A start counts for the window and the grace, by its shown age. So the inspection counts it for up to a
    /// round trip longer than an admission does, and by this machine's time of day if the servers' time is
    /// not known.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`]
    /// (no right to list), [`Error::NoAnswer`] (the link broke: call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        // The queue is listed first: a contender that starts meanwhile is shown as a start, and not twice.
        let mut lists = self.queue.inspect_with(std::slice::from_ref(&self.starts_queue)).await?.into_iter();
        let (queue, starts) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let counting = starts.into_iter().filter(|start| self.counts(start));
        let starts = counting.map(|start| start.with_role(START));
        let contenders = holders_first(starts.chain(waiting(queue)).collect());
        let limit = Some(self.limit);
        Ok(Inspection::of(RECIPE, &self.manager, &self.path, limit, contenders))
    }

    fn counts(&self, start: &ContenderInfo) -> bool {
        let at = Start { at: 0, span: decode(start.data().unwrap_or_default()) };
        i64::try_from(start.age().as_millis()).is_ok_and(|age| age < at.over_at(self.span()))
    }
}
