//! What the granted session timeout tells of the servers' tick.

use std::time::Duration;

use tracing::{error, warn};

use super::shared::Settings;
use crate::error::{ConfigError, ConnectError, LossReason};
use crate::session::{Session, SessionPurpose};

/// The least and the greatest session timeout of a server that sets neither, in ticks.
const TICKS_MIN: u32 = 2;
const TICKS_MAX: u32 = 20;

/// A session shorter than two ticks could never be confirmed. Servers grant at least two ticks, so the
/// configured tick is wrong.
pub(super) fn require(settings: &Settings, session: &Session) -> Result<(), ConnectError> {
    let tick = settings.session.tick;
    if session.timeout() >= tick * TICKS_MIN {
        return Ok(());
    }
    session.end(LossReason::Closed);
    Err(ConnectError::Config(ConfigError::Setting {
        name: "tick_time",
        value: format!("{tick:?}, and the servers granted a session timeout of {:?}", session.timeout()),
        advice: "servers grant at least two ticks; set tick_time to what they have",
    }))
}

/// Logs an error if the servers' tick seems to be longer than the setting: then a sign of life may wait in a
/// follower for longer than the lease clock assumes. Logs a warning if the timeout is far from the one that
/// was asked for: the locks of a crashed process stay for longer than its settings say, or a pause ends holds
/// sooner.
pub(super) fn warn_of(settings: &Settings, granted: Duration) {
    let (asked, tick_time) = (settings.session_timeout, settings.session.tick);
    // No hold rests on a session of views.
    if settings.session.purpose != SessionPurpose::Locks {
        return;
    }
    if let Some(tick) = shown_tick(asked, granted).filter(|tick| *tick > tick_time) {
        error!(
            ?tick_time, servers_tick = ?tick, ?asked, ?granted,
            "the servers' tick seems to be longer than tick_time, which voids promises 1 and 2"
        );
    } else if is_far(asked, granted) {
        warn!(?asked, ?granted, "the servers grant a session timeout far from the one that was asked for");
    }
}

/// By more than a tenth.
fn is_far(asked: Duration, granted: Duration) -> bool {
    asked.abs_diff(granted) > asked / 10
}

/// The tick of the servers, if they do not set the limits of session timeouts by themselves. `None` if the
/// timeout that was asked for is within their limits: then the answer does not show the tick.
fn shown_tick(asked: Duration, granted: Duration) -> Option<Duration> {
    // Clients ask in whole milliseconds.
    if granted > asked {
        Some(granted / TICKS_MIN)
    } else if granted.as_millis() < asked.as_millis() {
        Some(granted / TICKS_MAX)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_far_from_another_by_more_than_a_tenth() {
        let of = |asked, granted| is_far(Duration::from_secs(asked), Duration::from_secs(granted));
        assert!(!of(20, 20) && !of(20, 18) && !of(20, 22));
        assert!(of(20, 17) && of(20, 23) && of(120, 40));
    }

    #[test]
    fn a_timeout_that_the_servers_changed_shows_their_tick() {
        let (ms, of) = (Duration::from_millis, |tick: u64| Some(Duration::from_millis(tick)));
        for (asked, granted, tick) in [
            (ms(20_000), ms(20_000), None),
            (ms(6_000), ms(8_000), of(4_000)),
            (ms(120_000), ms(80_000), of(4_000)),
            (Duration::from_micros(20_000_500), ms(20_000), None),
        ] {
            assert_eq!(shown_tick(asked, granted), tick, "{asked:?}, {granted:?}");
        }
    }
}
