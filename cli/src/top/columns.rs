//! The widths of the columns, and texts that are wider: pure.

pub(super) use crate::width::width;

/// The space between two columns.
pub(super) const SPACE: usize = 1;

/// What a holder has at least, where the window has room for it.
const HOLDER_MIN: usize = 12;

/// The widths of the paths and of the holders in this many columns. Paths have what they need, and the
/// holders have the rest.
pub(super) fn shared(columns: usize, paths: usize, holders: usize) -> (usize, usize) {
    let kept = holders.min(HOLDER_MIN).min(columns / 3);
    let path = paths.min(columns - kept);
    (path, columns - path)
}

/// A text of at most this width. An ellipsis replaces its middle: the end of a path tells more than its
/// middle, and so does the process id at the end of a holder.
pub(super) fn shortened(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub(1);
    let head = fitting(text.chars(), room / 3);
    let tail = fitting(text.chars().rev(), room - width(&head));
    let ellipsis = if max == 0 { "" } else { "…" };
    format!("{head}{ellipsis}{}", tail.chars().rev().collect::<String>())
}

/// As many of the characters as fit.
fn fitting(characters: impl Iterator<Item = char>, max: usize) -> String {
    let mut text = String::new();
    for c in characters {
        text.push(c);
        if width(&text) > max {
            text.pop();
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_room_and_holders_a_part_of_it() {
        for (columns, paths, holders, expected) in [
            (50, 20, 16, (20, 30)),
            (50, 60, 16, (38, 12)),
            (50, 60, 5, (45, 5)),
            (20, 60, 60, (14, 6)),
            (0, 60, 60, (0, 0)),
        ] {
            assert_eq!(shared(columns, paths, holders), expected, "{columns} {paths} {holders}");
        }
    }

    #[test]
    fn a_text_that_is_too_wide_loses_its_middle() {
        for (max, expected) in
            [(20, "/shop/orders/train-7"), (13, "/sho…/train-7"), (8, "/s…ain-7"), (1, "…"), (0, "")]
        {
            assert_eq!(shortened("/shop/orders/train-7", max), expected);
        }
        // A character of two columns.
        assert_eq!(shortened("漢字漢字漢字", 8), "漢…漢字");
        for max in 0..14 {
            assert!(width(&shortened("漢字漢字漢字e\u{301}", max)) <= max, "{max}");
        }
    }
}
