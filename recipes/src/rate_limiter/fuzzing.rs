use super::decide::RECORDS_MAX;
use super::encoding::{StartsClaim, decode, encode};

/// The time of the write, in eight bytes, and behind it the data of a window.
pub(crate) fn windows(data: &[u8]) {
    let Some((mtime, data)) = data.split_first_chunk() else { return };
    let mtime = i64::from_be_bytes(*mtime);
    let Some(found) = decode(data, mtime) else { return };
    assert!(found.window.records().len() <= RECORDS_MAX);
    assert!(found.window.records().is_sorted_by_key(|record| record.at));
    let Some(limits) = found.limits else { return };
    found.window.over_at(limits.window);
    found.window.room_at(limits, 1);
    // A write that takes no start leaves the window as it is.
    let mark = "4f1d".to_owned();
    let written = encode(limits, &StartsClaim { starts: 0, grace: 0, mark: mark.clone() }, &found.window);
    let again = decode(&written, mtime).map(|again| (again.window, again.limits, again.mark));
    assert_eq!(again, Some((found.window, Some(limits), Some(mark))));
}
