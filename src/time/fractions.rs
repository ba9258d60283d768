//! Pauses and limits that are fractions of the session timeout, each with a name.
//!
//! They scale with the timeout, so a test with a short session and a deployment with a long one behave alike.

use std::time::Duration;

/// How much earlier than the timeout the lease ends: clock rates may differ by this much.
pub(crate) fn clock_margin(timeout: Duration) -> Duration {
    timeout / 100
}

/// The interval at which the lease clock is read while a lock is held: a quarter of the margin, because
/// timers do not run while the machine sleeps.
pub(crate) fn clock_check(timeout: Duration) -> Duration {
    (clock_margin(timeout) / 4).clamp(Duration::from_millis(5), Duration::from_millis(250))
}

/// The interval of lease confirmations: several may fail before the lease ends.
pub(crate) fn confirmation_interval(timeout: Duration) -> Duration {
    timeout / 6
}

/// The time limit of a confirmation: another one can be sent and answered before the lease ends.
pub(crate) fn confirmation_limit(timeout: Duration) -> Duration {
    timeout / 3
}

/// The pause before a request is repeated: short compared to the lease, and long enough for a server that has
/// just failed.
pub(crate) fn retry_pause(timeout: Duration) -> Duration {
    timeout / 40
}

/// The wait after which a waiter watches its own node: most waits end sooner and save the request.
pub(crate) fn own_watch_delay(timeout: Duration) -> Duration {
    timeout / 40
}

/// How long a create waits for the answer of the create before it, which its task has received and not read
/// yet. The release of a head waits as long if the create of its successor is in flight.
pub(crate) fn earlier_create_limit(timeout: Duration) -> Duration {
    timeout / 40
}

/// The interval at which held nodes without a watch are searched.
pub(crate) fn watch_scan_interval(timeout: Duration) -> Duration {
    timeout / 40
}

/// The time after which a held node gets a watch: most holds end sooner and save the request.
pub(crate) fn held_for_long(timeout: Duration) -> Duration {
    timeout / 10
}

/// The interval of reads that replace a watch when there is no room for one.
pub(crate) fn poll_interval(timeout: Duration) -> Duration {
    timeout / 20
}

/// The pause before the first read of a predecessor when there is no room for a watch on it.
pub(crate) fn predecessor_poll_min(timeout: Duration) -> Duration {
    timeout / 40
}

/// The longest pause between reads of a predecessor. The pauses double up to it, so a long queue causes
/// little load.
pub(crate) fn predecessor_poll_max(timeout: Duration) -> Duration {
    timeout / 4
}

/// The interval at which a connection is checked to carry the same session.
pub(crate) fn verify_interval(timeout: Duration) -> Duration {
    timeout / 20
}

/// The time after which a request without an answer counts against the connection. A request with a shorter
/// deadline proves nothing.
pub(crate) fn silence_min(timeout: Duration) -> Duration {
    timeout / 4
}

/// The time limit of one connection attempt: a second, if that is within two fifths of the timeout, so that
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
