use super::layout::{Layout, is_work_queue, may_be_a_directory};

/// The names of the children of a directory, one in a line, and behind an empty line those of a queue's
/// items.
pub(crate) fn directories(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (children, items) = text.split_once("\n\n").unwrap_or((&text, ""));
    let names = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    let (children, items) = (names(children), names(items));
    let layout = Layout::of(&children);
    for child in &children {
        may_be_a_directory(child);
        layout.is_searched(child);
    }
    is_work_queue(&children, &items);
}
