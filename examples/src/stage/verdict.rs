use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

/// The last line of an example: what it proved, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    holds: bool,
    numbers: String,
}

impl Verdict {
    /// Whether what the example claims was so, and what it saw.
    #[must_use]
    pub fn of(holds: bool, numbers: String) -> Self {
        Self { holds, numbers }
    }

    /// 0 only if the claim held.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        if self.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "proved" } else { "DISPROVED" };
        write!(formatter, "{word}: {}", self.numbers)
    }
}
