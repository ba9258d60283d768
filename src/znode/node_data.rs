//! The data of a contender's node, which identifies the contender to people.

use std::fmt::Write;

/// Host and process id of this process.
pub(crate) fn of_this_process() -> Vec<u8> {
    let mut text = String::new();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Writing to a string does not fail.
    let _ = write!(text, "host={host} pid={}", std::process::id());
    text.into_bytes()
}

/// The data of a node as one line of text, for messages: short, and without characters that would break a
/// log.
pub(crate) fn shown(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let text = without_holds(&text);
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
    if line.trim().is_empty() {
        line = "says nothing about itself".to_owned();
    }
    line
}

/// As [`shown`], with the fact that no session owns the node: then no crash removes it.
pub(crate) fn shown_with_owner(data: &[u8], ephemeral_owner: i64) -> String {
    match ephemeral_owner {
        0 => format!("{}; the node is persistent and belongs to no session", shown(data)),
        _ => shown(data),
    }
}

/// The ids of an owner's holds are for the diagnosis of deadlocks. They would leave no room for its name.
fn without_holds(text: &str) -> String {
    match text.split_once(" holds=") {
        Some((before, ids)) => {
            format!("{before}{}", ids.find(' ').and_then(|end| ids.get(end..)).unwrap_or_default())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_where_it_runs() {
        let text = String::from_utf8(of_this_process()).unwrap();
        assert!(text.contains(&format!("pid={}", std::process::id())), "{text}");
    }

    #[test]
    fn foreign_data_is_shown_in_one_short_line() {
        assert_eq!(shown(b"a\nb"), "a b");
        assert_eq!(shown(&[0xff; 1000]).chars().count(), 120);
        assert_eq!(shown(b""), "says nothing about itself");
        assert_eq!(shown(b"host=a pid=7 holds=1,2 owner=b"), "host=a pid=7 owner=b");
        assert_eq!(shown(b"host=a pid=7 holds=1,2"), "host=a pid=7");
        assert_eq!(shown_with_owner(b"a", 7), "a");
        assert_eq!(shown_with_owner(b"a", 0), "a; the node is persistent and belongs to no session");
    }
}
