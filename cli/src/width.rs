//! The columns of a terminal: one for most characters, two for most of Chinese, Japanese and Korean.

use unicode_width::UnicodeWidthStr;

/// The number of columns that a text needs.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text, and spaces up to this width.
pub(crate) fn padded(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_wide_characters_gets_fewer_spaces() {
        for (text, expected) in
            [("ab", "ab   "), ("漢字", "漢字 "), ("e\u{301}", "e\u{301}    "), ("abcdef", "abcdef")]
        {
            assert_eq!(padded(text, 5), expected);
        }
    }
}
