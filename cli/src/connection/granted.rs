//! What the granted session timeout tells of the servers: pure.

use std::time::Duration;

/// That the servers granted another session timeout than the one that was asked for.
#[derive(Debug)]
pub(crate) struct OtherTimeout {
    pub(crate) text: String,
    /// The program may not be protected.
    pub(crate) is_unsafe: bool,
}

/// The limits of session timeouts are two and twenty ticks, unless the servers set others. So a timeout that
/// they changed shows their tick, on which the lease rests.
pub(super) fn other_timeout(asked: Duration, granted: Duration, tick: Duration) -> Option<OtherTimeout> {
    // Clients ask in whole milliseconds.
    let is_raised = granted > asked;
    if !is_raised && granted.as_millis() >= asked.as_millis() {
        return None;
    }
    let shown = if is_raised { granted / 2 } else { granted / 20 };
    let text = format!("the servers granted a session timeout of {granted:?} instead of {asked:?}");
    let is_unsafe = shown > tick;
    let text = match is_unsafe {
        true => format!(
            "{text}: their tickTime seems to be {shown:?}, and --tick-time is {tick:?}, which is too short \
             to protect the program; give --tick-time {shown:?}, and let lockkeeper doctor check it"
        ),
        false if is_raised => {
            format!("{text}, their shortest: the lock of a dead machine is free that much later")
        }
        false => format!("{text}, their longest: a shorter pause than was planned for loses the lock"),
    };
    Some(OtherTimeout { text, is_unsafe })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_that_the_servers_changed_is_said_with_the_tick_that_it_shows() {
        let said = |asked, granted, tick| {
            let [asked, granted, tick] = [asked, granted, tick].map(Duration::from_millis);
            other_timeout(asked, granted, tick)
        };
        assert!(said(20_000, 20_000, 3_000).is_none());
        for (asked, granted, expected) in [
            (6_000, 8_000, "give --tick-time 4s"),
            (4_000, 5_000, "their shortest"),
            (120_000, 80_000, "give --tick-time 4s"),
            (60_000, 40_000, "their longest"),
        ] {
            let OtherTimeout { text, is_unsafe } = said(asked, granted, 3_000).unwrap();
            assert!(text.contains(expected) && text.contains("instead of"), "{text}");
            assert_eq!(is_unsafe, expected.contains("--tick-time"), "{text}");
        }
    }
}
