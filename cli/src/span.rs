//! Times on the command line.

use std::time::Duration;

/// Reads `90`, `90s`, `1m30s` or `250ms`. A bare number is seconds, as for `flock` and `timeout`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let read = seconds.map_or_else(|| humantime::parse_duration(text), Ok);
    read.map_err(|error| format!("{error}; give a time such as 90s, 1m30s or 250ms"))
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
    fn another_text_is_refused_with_an_example() {
        for text in ["", "soon", "-1", "1.5.1s"] {
            assert!(parse(text).unwrap_err().contains("1m30s"), "{text}");
        }
    }
}
