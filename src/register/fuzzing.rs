use super::writer::attempt_number;

/// The data of a writer node.
pub(crate) fn attempt_numbers(data: &[u8]) {
    if let Some(number) = attempt_number(data) {
        assert_eq!(attempt_number(number.to_string().as_bytes()), Some(number));
    }
}
