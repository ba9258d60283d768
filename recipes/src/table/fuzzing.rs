use lockkeeper_core::ZnodePath;

use super::key::{key_of, name_of};
use super::stored::{Stored, to_data};

/// The name of an entry's node, or its key, up to the first line feed, and behind it the data.
pub(crate) fn table_entries(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, data) = data.split_at_checked(end).unwrap_or_default();
    if let Ok(text) = std::str::from_utf8(line) {
        of_name(text);
        of_key(text);
    }
    let data = data.get(1..).unwrap_or_default();
    if let Stored::Value { schema, payload } = Stored::of(data) {
        let written = to_data(schema, payload.to_vec());
        assert_eq!(Stored::of(&written), Stored::Value { schema, payload });
        assert!(payload.len() <= data.len());
    }
    // Any bytes may be a value, in any schema.
    for schema in [0, 1, u32::MAX] {
        let written = to_data(schema, data.to_vec());
        assert_eq!(Stored::of(&written), Stored::Value { schema, payload: data });
    }
}

fn of_name(name: &str) {
    if let Some(key) = key_of(name) {
        assert_eq!(name_of(&key).ok().as_deref(), Some(name));
    }
}

fn of_key(key: &str) {
    let Ok(name) = name_of(key) else { return assert!(key.is_empty()) };
    assert_eq!(key_of(&name).as_deref(), Some(key), "{name}");
    let path = ZnodePath::try_from(format!("/{name}"));
    assert!(path.is_ok() || name.len() >= lockkeeper_core::PATH_BYTES_MAX, "{name}");
}
