use super::number::number_in;

/// The numbers in the data of counters, of eight bytes and of four.
pub(crate) fn numbers(data: &[u8]) {
    match number_in::<i64>(Some(data)) {
        Ok(number) => assert!(data.is_empty() && number == 0 || data == number.to_be_bytes()),
        Err(length) => assert!(length == data.len() && ![0, 8].contains(&length)),
    }
    match number_in::<i32>(Some(data)) {
        Ok(number) => assert!(data.is_empty() && number == 0 || data == number.to_be_bytes()),
        Err(length) => assert!(length == data.len() && ![0, 4].contains(&length)),
    }
}
