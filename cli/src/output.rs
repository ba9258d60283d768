//! What the command writes: results to the standard output, and messages to the standard error.

use std::fmt::Display;
use std::io::{self, Write};

use crate::exit::Failure;

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
    // One write, so that the messages of two processes do not mix.
    let text = neutral(&message.to_string());
    let _ = io::stderr().lock().write_all(format!("lockkeeper: {text}\n").as_bytes());
}

/// A text that another client or a server chose, on one line and without what would upset a terminal.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for several lines.
fn neutral(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

/// Whether a terminal only shows this character.
pub(crate) fn is_printable(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if is_printable(c) || stays(c) {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_debug());
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_upset_a_terminal_is_escaped_and_other_text_stays() {
        assert_eq!(printable("it's \"größe\" \\ 7"), "it's \"größe\" \\ 7");
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}"), "a\\nb\\u{1b}[2J\\u{202e}");
        assert_eq!(neutral("a\nb\u{1b}[2J\u{202e}"), "a\nb\\u{1b}[2J\\u{202e}");
    }
}
