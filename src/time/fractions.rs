//! The parts of the session timeout that pauses and limits last, by name.
//!
//! They scale with the timeout, so that a test with a short session and a deployment with a long one behave
//! alike.

use std::time::Duration;

/// The lease ends this part before the timeout: clock rates may differ by so much.
pub(crate) fn clock_margin(timeout: Duration) -> Duration {
    timeout / 100
}

/// The lease clock is read at least so often while something is held: a quarter of the margin, since timers
/// do not run while the machine sleeps.
pub(crate) fn clock_check(timeout: Duration) -> Duration {
    (clock_margin(timeout) / 4).clamp(Duration::from_millis(5), Duration::from_millis(250))
}

/// A confirmation of the lease is sent so often: several may be lost before the lease ends.
pub(crate) fn confirmation_interval(timeout: Duration) -> Duration {
    timeout / 6
}

/// A confirmation waits so long for its answer: another can be sent and answered before the lease ends.
pub(crate) fn confirmation_limit(timeout: Duration) -> Duration {
    timeout / 3
}

/// The pause before a request is repeated: short beside the lease, and long enough to load no server that has
/// just failed.
pub(crate) fn retry_pause(timeout: Duration) -> Duration {
    timeout / 40
}

/// A waiter watches its own node after so long: most waits end sooner and save the request.
pub(crate) fn own_watch_delay(timeout: Duration) -> Duration {
    timeout / 40
}

/// A create waits so long for the answer of the create before it, which its task has received and not read
/// yet. So does the release of a head, if the create of its successor is in flight.
pub(crate) fn earlier_create_limit(timeout: Duration) -> Duration {
    timeout / 40
}

/// Held nodes are looked through so often for those that have no watch.
pub(crate) fn watch_scan_interval(timeout: Duration) -> Duration {
    timeout / 40
}

/// A node that is held for so long gets a watch: most holds end sooner and save the request.
pub(crate) fn held_for_long(timeout: Duration) -> Duration {
    timeout / 10
}

/// Without room for a watch, a read is repeated so often instead.
pub(crate) fn poll_interval(timeout: Duration) -> Duration {
    timeout / 20
}

/// Without room for a watch on the predecessor, the first read of it comes after so long.
pub(crate) fn predecessor_poll_min(timeout: Duration) -> Duration {
    timeout / 40
}

/// The pauses between the reads of a predecessor double up to this: the load of long queues stays small.
pub(crate) fn predecessor_poll_max(timeout: Duration) -> Duration {
    timeout / 4
}

/// The next check whether a connection serves the same session comes after so long.
pub(crate) fn verify_interval(timeout: Duration) -> Duration {
    timeout / 20
}

/// A request without an answer counts against the connection only after so long: a caller with a short
/// deadline proves nothing.
pub(crate) fn silence_min(timeout: Duration) -> Duration {
    timeout / 4
}

/// A connection attempt may take so long: a second, if that is within two fifths of the timeout, so that
/// another server can still be tried in time.
pub(crate) fn connect_attempt(timeout: Duration) -> Duration {
    (timeout / 5).max((timeout * 2 / 5).min(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_keep_their_order_for_every_timeout() {
        for timeout in [Duration::from_millis(100), Duration::from_secs(15), Duration::from_secs(86_400)] {
            assert!(clock_margin(timeout) < retry_pause(timeout));
            assert!(
                confirmation_interval(timeout) + confirmation_limit(timeout)
                    < timeout - clock_margin(timeout)
            );
            assert!(predecessor_poll_min(timeout) < predecessor_poll_max(timeout));
            assert!(own_watch_delay(timeout) < held_for_long(timeout));
            assert!(connect_attempt(timeout) <= timeout * 2 / 5);
        }
    }
}
