//! The limits of one transaction, of the time for which a node stays in one process, and of paths.

use std::time::Duration;

use lockkeeper_core::{ConfigError, Error, IntoPath, REQUEST_BYTES_MAX, ZnodePath};

/// A tenth of the request is reserved for its other parts.
const BYTES_MAX: usize = REQUEST_BYTES_MAX - REQUEST_BYTES_MAX / 10;

/// The bytes of a name with its sequence number, and of its framing.
const NAME_BYTES: usize = 160;

/// Refuses more nodes below `path` than one transaction can create.
pub(crate) fn check(name: &'static str, nodes: u32, path: &ZnodePath, data: &[u8]) -> Result<(), Error> {
    let each = path.as_str().len() + data.len() + NAME_BYTES;
    if usize::try_from(nodes).unwrap_or(usize::MAX).saturating_mul(each) <= BYTES_MAX {
        return Ok(());
    }
    Err(Error::Config(ConfigError::Setting {
        name,
        value: format!("{nodes} at once, of {each} bytes each"),
        advice: "ask for fewer at once: one request of the server has room for a megabyte",
    }))
}

/// The longest time for which one process may keep a node idle, or hand it off among its tasks. Other
/// processes wait meanwhile. After a crash they wait for the whole session timeout.
pub(crate) fn hand_off_max(session_timeout: Duration) -> Duration {
    session_timeout / 3
}

/// The path of a recipe that belongs to it alone. Refuses the root.
pub(crate) fn own_path(path: impl IntoPath, advice: &'static str) -> Result<ZnodePath, Error> {
    let path = path.into_path()?;
    if path.is_root() {
        return Err(ConfigError::Setting { name: "path", value: "/".to_owned(), advice }.into());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_one_request_is_refused() {
        let path: ZnodePath = "/semaphores/a".parse().unwrap();
        assert!(check("permits", 4_000, &path, b"web-1 4711").is_ok());
        for nodes in [6_000, u32::MAX] {
            assert!(matches!(check("permits", nodes, &path, b""), Err(Error::Config(_))), "{nodes}");
        }
    }
}
