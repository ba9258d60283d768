//! What the command writes: results to the standard output, and messages to the standard error.

use std::fmt::Display;
use std::io::{self, Write};

use tracing::Level;

use crate::escape::neutral;
use crate::exit::Failure;
use crate::log::{self, Fields};

/// Prints lines for people, and the end of the last one. What would upset a terminal is escaped: paths, and
/// whatever else other clients chose, are in nearly every line. A reader that has read enough, such as
/// `head`, ends the command without a message.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    say_exactly(&neutral(text))
}

/// Prints what a program reads, as it is.
pub(crate) fn say_exactly(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Writes a message for people. Nobody reads it if the standard error is closed, which must not end a program
/// that runs under a lock.
pub(crate) fn warn(message: impl Display) {
    log::write(&Level::WARN, &message.to_string(), &Fields::new());
}

/// The same for what ends the command.
pub(crate) fn fail(message: impl Display) {
    log::write(&Level::ERROR, &message.to_string(), &Fields::new());
}
