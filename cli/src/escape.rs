//! Texts without what would upset a terminal.

use serde::Serialize;

/// A text that another client or a server chose, on one line and without what would upset a terminal.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for several lines.
pub(crate) fn neutral(text: &str) -> String {
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

/// A value as JSON on one line.
pub(crate) fn to_text(value: &impl Serialize) -> String {
    // Maps with keys that are no text, and values that fail, are the only errors. There are none here.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::new();
    for c in text.chars() {
        if is_printable(c) {
            line.push(c);
        } else {
            // Only texts have such characters, and this is how JSON escapes them.
            let mut units = [0; 2];
            line.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
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
        assert_eq!(neutral("a\nb\u{1b}[2J\u{202e}"), "a\nb\\u{1b}[2J\\u{202e}");
    }

    #[test]
    fn what_would_upset_a_terminal_is_escaped_and_read_back_as_it_was() {
        let text = "it's \"größe\" \\ \n\u{1b}\u{7f}\u{202e}\u{e0001}";
        let line = to_text(&text);
        assert!(line.chars().all(is_printable), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
