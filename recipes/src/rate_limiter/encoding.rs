//! The bytes of the window: text, for people as well.

use super::decide::{Limits, Window, WindowRecord};
use super::numbers::LimiterKey;

/// The data of a node that was made for a window, and has none yet.
pub(super) const EMPTY: &[u8] = b"no starts\n";

/// What one write adds to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StartsClaim {
    /// None, to learn the time.
    pub(super) starts: u32,
    pub(super) grace: i64,
    /// Names the batch: so its process finds it if the answer is lost.
    pub(super) mark: String,
}

/// A window, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) window: Window,
    /// The numbers of the last writer.
    pub(super) limits: Option<Limits>,
    /// The mark of the last write.
    pub(super) mark: Option<String>,
}

impl Recorded {
    /// The first time at which nothing counts, by the numbers of the last writer, or else of this limiter.
    pub(super) fn over_at(&self, key: &LimiterKey) -> i64 {
        let window = self.limits.map_or_else(|| key.window_millis(), |limits| limits.window);
        self.window.over_at(window).unwrap_or(i64::MIN)
    }
}

/// The data with the window before the write, and what the write adds. The servers know the time of the
/// write: it is the `mtime` of the node.
pub(super) fn encode(limits: Limits, claim: &StartsClaim, before: &Window) -> Vec<u8> {
    let Limits { starts, window } = limits;
    let mut text = format!("{starts} starts in {window} ms\n");
    text.push_str(&format!("{} grace {} by {}\n", claim.starts, claim.grace, claim.mark));
    for WindowRecord { at, starts, grace } in before.records() {
        text.push_str(&format!("{starts} grace {grace} at {at}\n"));
    }
    text.into_bytes()
}

/// The window in this data, which was written at `mtime`. `None` if that is no window. A node without data
/// was not made for a window: it may be a container, which the servers delete.
pub(super) fn decode(data: &[u8], mtime: i64) -> Option<Recorded> {
    if data == EMPTY {
        return Some(Recorded::default());
    }
    let mut lines = std::str::from_utf8(data).ok()?.lines();
    let (starts, window) = lines.next()?.strip_suffix(" ms")?.split_once(" starts in ")?;
    let limits = Limits { starts: starts.parse().ok()?, window: window.parse().ok()? };
    let (claimed, mark) = lines.next()?.split_once(" by ")?;
    let (starts, grace) = starts_and_grace(claimed)?;
    let mut records = Window::default();
    for line in lines {
        let (record, at) = line.split_once(" at ")?;
        let (starts, grace) = starts_and_grace(record)?;
        records.add(WindowRecord { at: at.parse().ok()?, starts, grace });
    }
    if starts > 0 {
        records.add(WindowRecord { at: mtime, starts, grace });
    }
    Some(Recorded { window: records, limits: Some(limits), mark: Some(mark.to_owned()) })
}

fn starts_and_grace(text: &str) -> Option<(u32, i64)> {
    let (starts, grace) = text.split_once(" grace ")?;
    Some((starts.parse().ok()?, grace.parse().ok().filter(|grace| *grace >= 0)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { starts: 200, window: 1_000 };

    #[test]
    fn the_window_is_text_and_the_newest_starts_have_the_time_of_the_node() {
        let mut before = Window::default();
        before.add(WindowRecord { at: 1_764_137_418_123, starts: 5, grace: 10 });
        let claim = StartsClaim { starts: 3, grace: 12, mark: "a-1".to_owned() };
        let data = encode(LIMITS, &claim, &before);
        let text = "200 starts in 1000 ms\n3 grace 12 by a-1\n5 grace 10 at 1764137418123\n";
        assert_eq!(String::from_utf8_lossy(&data), text);
        before.add(WindowRecord { at: 1_764_137_418_200, starts: 3, grace: 12 });
        let expected = Recorded { window: before, limits: Some(LIMITS), mark: Some("a-1".to_owned()) };
        assert_eq!(decode(&data, 1_764_137_418_200), Some(expected));
    }

    #[test]
    fn data_that_is_no_window_is_none() {
        for text in [
            "x",
            "200 starts in 1000 ms",
            "200 starts in 1000 ms\n3 grace -1 by a",
            "200 starts in 1000 ms\n3 grace 1 by a\n5 grace 1",
            "host-1 4711",
        ] {
            assert_eq!(decode(text.as_bytes(), 1), None, "{text}");
        }
        assert_eq!(decode(EMPTY, 1), Some(Recorded::default()));
        assert_eq!(decode(b"", 1), None);
    }

    proptest! {
        #[test]
        fn bytes_of_others_never_panic(data in prop::collection::vec(any::<u8>(), 0..200), mtime: i64) {
            decode(&data, mtime);
        }

        #[test]
        fn numbers_of_others_never_panic(numbers: (u32, i64, u32, i64, i64), mtime: i64) {
            let (starts, window, one, grace, at) = numbers;
            let record = format!("{one} grace {grace}");
            let text = format!("{starts} starts in {window} ms\n{record} by a\n{record} at {at}");
            if let Some(recorded) = decode(text.as_bytes(), mtime) {
                recorded.window.wait(recorded.limits.unwrap(), u64::MAX, one, mtime);
                recorded.window.used(window, mtime);
            }
        }
    }
}
