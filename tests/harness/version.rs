//! The versions of servers and libraries.

/// A release: major, minor, patch. Later ones are greater.
pub type Version = (u32, u32, u32);

/// The three numbers at the beginning of `text`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let numbers = text.split(|end: char| end != '.' && !end.is_ascii_digit()).next()?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_ends_before_what_is_not_a_number() {
        assert_eq!(parse("3.9.5-293c895a8d966a3e, built on 2026-02-11"), Some((3, 9, 5)));
        assert_eq!(parse("3.8.0--1, built on 2023-02-24"), Some((3, 8, 0)));
        assert_eq!(parse("5.9.0.jar"), Some((5, 9, 0)));
        assert_eq!(parse("3.9, built on 2026-02-11"), None);
        assert!((3, 8, 4) < (3, 9, 2) && (3, 9, 2) < (3, 10, 0));
    }
}
