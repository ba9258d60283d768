//! The id of a participant, which is the data of a node that others read.

use lockkeeper_core::{ConfigError, Error};

/// The longest id: an inspection reads as many bytes of a node.
pub(crate) const ID_BYTES_MAX: usize = 1024;

/// The data by which a holder is asked to release.
pub(crate) const REVOKE: &str = "__REVOKE__";

/// Refuses an id of which no reader would see all.
pub(crate) fn check_length(id: &str) -> Result<(), Error> {
    match id.len() {
        0..=ID_BYTES_MAX => Ok(()),
        bytes => Err(refused(format!("{bytes} bytes long"), "take at most 1024 bytes")),
    }
}

/// The same for the id of a holder, which also must not read as a request to release.
pub(crate) fn check_holder(id: &str) -> Result<(), Error> {
    if id.strip_prefix(REVOKE).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return Err(refused(id.to_owned(), "this text asks a holder to release; take another one"));
    }
    check_length(id)
}

fn refused(value: String, advice: &'static str) -> Error {
    ConfigError::Setting { name: "id", value, advice }.into()
}
