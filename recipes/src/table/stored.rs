//! The data of the node of an entry: a value, or the mark of a removed one. Pure.

/// The mark of a removed entry.
pub(super) const REMOVED: &[u8] = b"removed\n";

const SCHEMA: &[u8] = b"schema ";

/// What the data of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    /// The entry was removed.
    Removed,
    /// A value.
    Value {
        /// The schema with which it was written.
        schema: u32,
        /// Its bytes in the form of the codec.
        payload: &'a [u8],
    },
}

impl<'a> Stored<'a> {
    pub(super) fn of(data: &'a [u8]) -> Self {
        if data == REMOVED {
            return Self::Removed;
        }
        let (schema, payload) = headed(data).unwrap_or((0, data));
        Self::Value { schema, payload }
    }
}

/// The schema and the value behind the line that names it.
fn headed(data: &[u8]) -> Option<(u32, &[u8])> {
    let rest = data.strip_prefix(SCHEMA)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let digits = std::str::from_utf8(rest.get(..end)?).ok()?;
    let schema: u32 = digits.parse().ok()?;
    // Only what `to_data` writes: no sign, no zeros in front.
    (schema.to_string() == digits).then_some((schema, rest.get(end + 1..)?))
}

/// The data of a node with this value. Schema 0 needs no line, unless the value could be taken for another
/// form.
pub(super) fn to_data(schema: u32, payload: Vec<u8>) -> Vec<u8> {
    if schema == 0 && payload != REMOVED && !payload.starts_with(SCHEMA) {
        return payload;
    }
    [format!("schema {schema}\n").as_bytes(), &payload].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_is_read_as_it_was_written(
            schema in prop_oneof![Just(0), Just(1), any::<u32>()],
            payload in prop_oneof![
                any::<Vec<u8>>(),
                Just(REMOVED.to_vec()),
                "schema [0-9]{0,12}\n?[a-z]{0,3}".prop_map(String::into_bytes),
            ],
        ) {
            let data = to_data(schema, payload.clone());
            prop_assert_eq!(Stored::of(&data), Stored::Value { schema, payload: &payload });
        }
    }

    #[test]
    fn a_value_without_a_schema_is_the_bytes_of_the_codec() {
        assert_eq!(to_data(0, b"{\"a\":1}".to_vec()), b"{\"a\":1}");
        assert_eq!(to_data(2, b"{}".to_vec()), b"schema 2\n{}");
        assert_eq!(Stored::of(b"schema +2\nx"), Stored::Value { schema: 0, payload: b"schema +2\nx" });
        assert_eq!(Stored::of(REMOVED), Stored::Removed);
    }
}
