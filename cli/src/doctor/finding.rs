//! What the doctor says: one line for each finding.

use std::fmt::{self, Display, Formatter};

use crate::exit::Exit;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Ok,
    Warn,
    Bad,
}

/// One line of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) text: String,
}

impl Finding {
    pub(super) fn ok(text: impl Into<String>) -> Self {
        Self { level: Level::Ok, text: text.into() }
    }

    /// With what to do about it.
    pub(super) fn warn(text: impl Display, advice: impl Display) -> Self {
        Self { level: Level::Warn, text: format!("{text}; {advice}") }
    }

    /// With what to do about it.
    pub(super) fn bad(text: impl Display, advice: impl Display) -> Self {
        Self { level: Level::Bad, text: format!("{text}; {advice}") }
    }
}

impl Display for Finding {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Bad => "bad",
        };
        write!(formatter, "{level:<5}{}", self.text)
    }
}

/// The exit code of the worst finding.
pub(super) fn exit(findings: &[Finding]) -> Exit {
    match findings.iter().map(|finding| finding.level).max() {
        None | Some(Level::Ok) => Exit::SUCCESS,
        Some(Level::Warn) => Exit::NO,
        Some(Level::Bad) => Exit::BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_the_code() {
        let (ok, warn, bad) = (Finding::ok("a"), Finding::warn("b", "c"), Finding::bad("d", "e"));
        assert_eq!(exit(std::slice::from_ref(&ok)).code(), 0);
        assert_eq!(exit(&[ok.clone(), warn.clone()]).code(), 1);
        assert_eq!(exit(&[warn.clone(), bad, ok]).code(), 2);
        assert_eq!(warn.to_string(), "warn b; c");
    }
}
