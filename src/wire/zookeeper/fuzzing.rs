use super::convert::is_created_as;
use super::look::cause_of_text;
use crate::wire::CreateMode;

/// The greatest answer to a look that is read.
const ANSWER_BYTES_MAX: usize = 64;

/// The answer of a server to `srvr`, and the path of a node that it says it has created.
pub(crate) fn server_answers(data: &[u8]) {
    let answer = data.get(..data.len().min(ANSWER_BYTES_MAX)).unwrap_or_default();
    for is_secure in [false, true] {
        let cause = cause_of_text(is_secure, answer);
        assert!(cause.is_none_or(|cause| !cause.chars().any(char::is_control)));
    }
    let text = String::from_utf8_lossy(data);
    let (asked, created) = text.split_once('\n').unwrap_or(("/a/lock-", &text));
    let is_sequential = is_created_as(asked, CreateMode::EphemeralSequential, created);
    let is_plain = is_created_as(asked, CreateMode::Persistent, created);
    assert!(!(is_sequential && is_plain));
    assert_eq!(is_plain, asked == created);
    // At least ten characters: digits, and at most one sign before them.
    let appended = created.get(asked.len()..).unwrap_or_default();
    let digits = appended.bytes().filter(u8::is_ascii_digit).count();
    let signs = usize::from(appended.starts_with('-'));
    assert!(!is_sequential || appended.len() >= 10 && signs + digits == appended.len(), "{appended:?}");
}
