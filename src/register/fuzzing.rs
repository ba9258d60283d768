use super::writer::attempt_number;

/// The data of a writer node.
pub(crate) fn attempt_numbers(data: &[u8]) {
    let digits = data.strip_prefix(b"+").unwrap_or(data);
    let is_decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let append = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let number = is_decimal.then(|| digits.iter().try_fold(0, append)).flatten();
    assert_eq!(attempt_number(data), number);
}
