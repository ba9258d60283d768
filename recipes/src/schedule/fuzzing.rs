use super::record::{DoneRecord, decode, encode, name, slot};

/// The name of a slot's node up to the first line feed, and behind it the data.
pub(crate) fn slot_records(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, record) = data.split_at_checked(end).unwrap_or_default();
    if let Some(slot) = std::str::from_utf8(line).ok().and_then(slot) {
        assert_eq!(name(slot).as_bytes(), line);
    }
    let Some(done) = decode(record.get(1..).unwrap_or_default()) else { return };
    let written = encode(done.token, done.by.as_bytes(), &done.result);
    // A process has no control characters there once the record is written by this library.
    let by: String = done.by.chars().map(|c| if c.is_ascii_control() { ' ' } else { c }).collect();
    let again = DoneRecord { by, ..done };
    assert_eq!(encode(again.token, again.by.as_bytes(), &again.result), written);
    assert_eq!(decode(&written), Some(again));
}
