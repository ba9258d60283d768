use std::fmt::{self, Display, Formatter, Write};
use std::time::{Duration, SystemTime};

use crate::hold::without_request;

/// The greatest number of characters; an ellipsis replaces the rest.
const CHARS_MAX: usize = 160;

/// The greatest number of holds that a waiter's data names: 300 bytes, whatever the owner holds.
const HOLDS_MAX: usize = 8;

const HOLDS: &str = " holds=";
const UNTIL: &str = " until=";
// The last part: an owner's name may have any characters.
const OWNER: &str = " owner=";

/// The identity that a contender's node claims in its data.
///
/// The data of a node is for people: every client may write any bytes. Data in this library's format is split
/// into its parts, `host=<name> pid=<number> <note> holds=<ids> until=<time> owner=<name>`; any other data is
/// the note, unchanged. Bytes that are not text, and characters that would upset a terminal, are escaped.
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
    holds: Vec<String>,
    until: Option<SystemTime>,
}

impl Identity {
    /// For recipe authors: the data of a waiter's node, before the name of the owner is appended. `data`
    /// identifies the process, `holds` are the [create ids](crate::NodeName::create_id) of the nodes that the
    /// owner holds, and `until` is the end of its wait by this machine's time of day.
    ///
    /// If `data` ends with the holds of an enclosing process, `holds` follow these. The data names the first
    /// eight holds and counts the others.
    ///
    /// # Examples
    ///
    /// A process starts another one, and waits for its end:
    ///
    /// ```
    /// use lockkeeper_core::Identity;
    ///
    /// let holds = ["5a1f".to_owned()];
    /// let within = Identity::append_wait(b"host=web-3 pid=72", &holds, None);
    /// let data = Identity::append_wait(&within, &["7b2e".to_owned()], None);
    /// assert_eq!(data, b"host=web-3 pid=72 holds=5a1f,7b2e");
    /// ```
    #[must_use]
    pub fn append_wait(data: &[u8], holds: &[String], until: Option<SystemTime>) -> Vec<u8> {
        let (data, enclosing) = match std::str::from_utf8(data).map(take_holds) {
            Ok((rest, enclosing)) if !enclosing.is_empty() => (rest.as_bytes(), enclosing),
            _ => (data, Vec::new()),
        };
        let holds = &[enclosing.as_slice(), holds].concat();
        let mut text = String::new();
        if !holds.is_empty() {
            let (named, others) = holds.split_at(holds.len().min(HOLDS_MAX));
            // A write to a string cannot fail.
            let _ = write!(text, "{HOLDS}{}", named.join(","));
            if !others.is_empty() {
                let _ = write!(text, ",+{}", others.len());
            }
        }
        if let Some(seconds) = until.and_then(|until| until.duration_since(SystemTime::UNIX_EPOCH).ok()) {
            let _ = write!(text, "{UNTIL}{}", seconds.as_secs());
        }
        [data, text.as_bytes()].concat()
    }

    /// Reads the data of a node. If it was asked to release, by a request that kept what the node said, that
    /// is read.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let data = without_request(data);
        let text = escaped(data);
        let whole = std::str::from_utf8(data).unwrap_or_default();
        let (rest, owner) = match whole.split_once(OWNER) {
            Some((before, owner)) => (before, Some(escaped(owner.as_bytes()))),
            None => (whole, None),
        };
        let (rest, until) = take_until(rest);
        let (rest, holds) = take_holds(rest);
        let Some((host, pid, note)) = take_apart(rest) else {
            let note = (!text.is_empty()).then(|| text.clone());
            return Self { text, host: None, pid: None, owner: None, note, holds, until };
        };
        let note = escaped(note.trim().as_bytes());
        let note = (!note.is_empty()).then_some(note);
        Self { text, host: Some(escaped(host.as_bytes())), pid: Some(pid), owner, note, holds, until }
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

    /// The [create ids](crate::NodeName::create_id) of the nodes that the owner held when it began to wait:
    /// at most eight. Only a waiter for a named owner names its holds.
    #[must_use]
    pub fn holds(&self) -> &[String] {
        &self.holds
    }

    /// The end of the wait, to the second, by the time of day of the waiter's machine. `None` if the wait has
    /// no limit, or if the data does not name the limit.
    #[must_use]
    pub fn until(&self) -> Option<SystemTime> {
        self.until
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

/// The text before the end of the wait, and that end.
fn take_until(text: &str) -> (&str, Option<SystemTime>) {
    let seconds = text.rsplit_once(UNTIL).and_then(|(rest, seconds)| Some((rest, seconds.parse().ok()?)));
    match seconds
        .map(|(rest, seconds)| (rest, SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))))
    {
        Some((rest, Some(until))) => (rest, Some(until)),
        _ => (text, None),
    }
}

/// The text before the holds, and the named ones.
fn take_holds(text: &str) -> (&str, Vec<String>) {
    let is_hold = |id: &str| {
        (1..=36).contains(&id.len()) && id.chars().all(|c| c.is_ascii_hexdigit() || "-+".contains(c))
    };
    match text.rsplit_once(HOLDS) {
        Some((rest, ids)) if ids.split(',').all(is_hold) => {
            let named = ids.split(',').filter(|id| !id.starts_with('+'));
            (rest, named.take(HOLDS_MAX).map(str::to_owned).collect())
        }
        _ => (text, Vec::new()),
    }
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
    fn a_waiter_names_the_holds_of_its_owner_and_the_end_of_its_wait() {
        let ids: Vec<String> = (0..10).map(|number| format!("{number:036x}")).collect();
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_418_590);
        let mut data = Identity::append_wait(b"host=a pid=7 nightly", &ids, Some(until));
        data.extend_from_slice(b" owner=order holds=x until=y");
        assert!(data.len() < 400, "{}", data.len());
        let read = Identity::read(&data);
        assert_eq!((read.host(), read.pid(), read.note()), (Some("a"), Some(7), Some("nightly")));
        assert_eq!(read.owner(), Some("order holds=x until=y"));
        assert_eq!((read.holds(), read.until()), (&ids[..HOLDS_MAX], Some(until)));

        assert_eq!(Identity::append_wait(b"host=a pid=7", &[], None), b"host=a pid=7");
        // Data of the application's own is a note as a whole. The holds behind it are known all the same.
        let own = Identity::read(&Identity::append_wait(b"order 4711", &ids[..1], Some(until)));
        assert_eq!((own.host(), own.holds(), own.until()), (None, &ids[..1], Some(until)));
    }

    #[test]
    fn a_request_to_release_hides_no_identity() {
        let read = Identity::read(b"__REVOKE__ host=a pid=7 nightly owner=b");
        assert_eq!(read, Identity::read(b"host=a pid=7 nightly owner=b"));
        assert_eq!(Identity::read(b"__REVOKE__").note(), Some("__REVOKE__"));
    }

    #[test]
    fn text_that_only_looks_like_holds_is_a_note() {
        for note in ["holds=a lot", "until=noon", "holds=", "until=99999999999999999999"] {
            let read = Identity::read(format!("host=a pid=7 {note} owner=b").as_bytes());
            assert!(read.until().is_none() && read.holds().is_empty(), "{read:?}");
            assert_eq!(read.owner(), Some("b"));
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
