//! Times on the command line.

use std::time::Duration;

/// Reads `90`, `90s`, `1m30s` or `250ms`. A bare number is seconds, as for `flock` and `timeout`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let read = seconds.map_or_else(|| humantime::parse_duration(text), Ok);
    read.map_err(|_| "it is no time; give one such as 90s, 1m30s or 250ms".to_owned())
}

/// The shortest pause between two looks at the servers.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Reads the pause between two looks: without one, a look would follow the other without end.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse(text)?;
    if interval < INTERVAL_MIN {
        return Err(format!("give at least {INTERVAL_MIN:?}"));
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds_and_units_are_read() {
        for (text, millis) in
            [("0", 0), ("90", 90_000), ("1m30s", 90_000), ("0.25", 250), ("250ms", 250), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn looks_have_a_pause_between_them() {
        assert_eq!(interval("0.1"), Ok(INTERVAL_MIN));
        for text in ["0", "99ms", "soon"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn another_text_is_refused_with_an_example() {
        for text in ["", "soon", "-1", "1.5.1s"] {
            assert!(parse(text).unwrap_err().contains("1m30s"), "{text}");
        }
    }
}
