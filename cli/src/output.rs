//! What the command writes: results to the standard output, and messages to the standard error.

use std::fmt::Display;
use std::io::{self, Write};

use crate::exit::Failure;

/// Prints one text and the end of its line. A reader that has read enough, such as `head`, ends the command
/// without a message.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Writes a message for people. Nobody reads it if the standard error is closed, which must not end a program
/// that runs under a lock.
pub(crate) fn warn(message: impl Display) {
    // One write, so that the messages of two processes do not mix.
    let _ = io::stderr().lock().write_all(format!("lockkeeper: {message}\n").as_bytes());
}

/// A text that another client or a server chose, on one line and without what would upset a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => line.push(c),
            _ => line.extend(c.escape_debug()),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_upset_a_terminal_is_escaped_and_other_text_stays() {
        assert_eq!(printable("it's \"größe\" \\ 7"), "it's \"größe\" \\ 7");
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}"), "a\\nb\\u{1b}[2J\\u{202e}");
    }
}
