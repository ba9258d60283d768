use std::fmt::{self, Display, Formatter, Write};

/// The greatest number of characters; an ellipsis replaces the rest.
const CHARS_MAX: usize = 160;

/// The identity that a contender's node claims in its data.
///
/// The data of a node is for people: every client may write any bytes. Data in this library's format is split
/// into its parts, `host=<name> pid=<number> <note> owner=<name>`; any other data is the note, unchanged.
/// Bytes that are not text, and characters that would upset a terminal, are escaped.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::Identity;
///
/// let ours = Identity::read(b"host=web-3 pid=71 nightly owner=order 4711");
/// assert_eq!((ours.host(), ours.pid()), (Some("web-3"), Some(71)));
/// assert_eq!((ours.note(), ours.owner()), (Some("nightly"), Some("order 4711")));
///
/// // Curator's is an address.
/// let java = Identity::read(b"10.0.0.7");
/// assert_eq!((java.host(), java.note()), (None, Some("10.0.0.7")));
/// assert_eq!(Identity::read(&[0x1b, b'[', 0xff]).to_string(), "\\u{1b}[\\xff");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    text: String,
    host: Option<String>,
    pid: Option<u32>,
    owner: Option<String>,
    note: Option<String>,
}

impl Identity {
    /// Reads the data of a node.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let text = escaped(data);
        let ours = std::str::from_utf8(data).ok().and_then(take_apart);
        let Some((host, pid, rest)) = ours else {
            let note = (!text.is_empty()).then(|| text.clone());
            return Self { text, host: None, pid: None, owner: None, note };
        };
        let (note, owner) = match rest.split_once(" owner=") {
            Some((note, owner)) => (note, Some(escaped(owner.as_bytes()))),
            None => (rest, None),
        };
        let note = escaped(note.trim().as_bytes());
        let note = (!note.is_empty()).then_some(note);
        Self { text, host: Some(escaped(host.as_bytes())), pid: Some(pid), owner, note }
    }

    /// The machine, if the data names one.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The process id on that machine, if the data has one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The owner that it contends for, if the data names one.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The rest of the data; all of it, if it is not in this library's default format.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// All of the data, on one line.
impl Display for Identity {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The host, the process id, and the rest.
fn take_apart(text: &str) -> Option<(&str, u32, &str)> {
    // A rate limiter's start begins with a count.
    let text = match text.strip_prefix("counts=").and_then(|rest| rest.split_once(' ')) {
        Some((_, behind)) => behind,
        None => text,
    };
    let (host, rest) = text.strip_prefix("host=")?.split_once(" pid=")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (pid, behind) = rest.split_at_checked(digits)?;
    let is_whole = !host.contains(' ') && (behind.is_empty() || behind.starts_with(' '));
    is_whole.then_some((host, pid.parse().ok()?, behind))
}

/// One short line of text that is safe to print.
fn escaped(data: &[u8]) -> String {
    let mut text = String::new();
    let mut left = CHARS_MAX;
    for chunk in data.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                text.push('…');
                return text;
            }
            left -= 1;
            match c {
                '"' | '\'' | '\\' => text.push(c),
                _ => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            if left == 0 {
                text.push('…');
                return text;
            }
            left -= 1;
            // A write to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_we_write_is_taken_apart() {
        for (data, host, pid, note, owner) in [
            ("host=a pid=7", Some("a"), Some(7), None, None),
            ("host=a pid=7 owner=b c", Some("a"), Some(7), None, Some("b c")),
            ("host=a pid=7 nightly run", Some("a"), Some(7), Some("nightly run"), None),
            ("counts=100 host=a pid=7", Some("a"), Some(7), None, None),
            ("host=a pid=x", None, None, Some("host=a pid=x"), None),
            ("host=a pid=7x", None, None, Some("host=a pid=7x"), None),
            ("host=a b pid=7", None, None, Some("host=a b pid=7"), None),
            ("10.1.2.3", None, None, Some("10.1.2.3"), None),
            ("", None, None, None, None),
        ] {
            let read = Identity::read(data.as_bytes());
            assert_eq!(
                (read.host(), read.pid(), read.note(), read.owner()),
                (host, pid, note, owner),
                "{data}"
            );
            assert_eq!(read.to_string(), data);
        }
    }

    #[test]
    fn what_would_upset_a_terminal_is_escaped_and_what_is_long_is_cut() {
        assert_eq!(Identity::read(b"a\nb\x1b[2J").to_string(), "a\\nb\\u{1b}[2J");
        // The right-to-left override, by which a name can be made to look like another.
        assert_eq!(Identity::read("a\u{202e}b".as_bytes()).to_string(), "a\\u{202e}b");
        let long = Identity::read(&[0xff; 1000]).to_string();
        assert!(long.ends_with('…') && long.len() < 1000, "{long}");
    }

    proptest! {
        #[test]
        fn any_data_is_one_printable_line(data: Vec<u8>) {
            let text = Identity::read(&data).to_string();
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
}
