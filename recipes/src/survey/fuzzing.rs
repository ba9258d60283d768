use super::layout::{Layout, is_work_queue, may_be_a_directory, may_be_work_queue};

/// The names of the children of a directory, one in a line, and behind an empty line those of a queue's
/// items.
pub(crate) fn directories(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (children, items) = text.split_once("\n\n").unwrap_or((&text, ""));
    let names = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    let (children, items) = (names(children), names(items));
    let layout = Layout::of(&children);
    for child in &children {
        // What may be a directory of people has the name of a contender, and is looked at on its own.
        assert!(!may_be_a_directory(child) || !layout.is_searched(child), "{child}");
    }
    assert!(!is_work_queue(&children, &items) || may_be_work_queue(&children));
}
