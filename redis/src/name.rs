use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::error::ConfigError;

/// The longest name of a lock, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 1_024;

/// The name of a lock, which is its key, and the names of the keys beside it.
///
/// All keys of a lock are in one slot of a cluster: those beside it have its name, or the part of its name
/// that decides, as their hash tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LockName(Arc<str>);

impl LockName {
    pub(crate) fn new(name: &str) -> Result<Self, ConfigError> {
        let refuse = |value: String, advice| Err(ConfigError { setting: "name", value, advice });
        if name.is_empty() {
            return refuse("empty".to_owned(), "name the key of the lock");
        }
        if name.len() > NAME_BYTES_MAX {
            return refuse(format!("{} bytes long", name.len()), "use at most 1024 bytes");
        }
        if name.chars().any(char::is_control) {
            return refuse(format!("{name:?}"), "leave out control characters");
        }
        if name.contains(['{', '}']) && !has_hash_tag(name) {
            return refuse(
                format!("{name:?}"),
                "use braces only for the hash tag of a cluster, as in {shop}:stock",
            );
        }
        // Its other keys would be those of the name within.
        if let Some(within) = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
            && !within.contains(['{', '}'])
        {
            return refuse(
                format!("{name:?}"),
                "leave the braces out: the hash tag is the whole name anyway",
            );
        }
        Ok(Self(name.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The key for a part of the lock.
    pub(crate) fn beside(&self, part: &str) -> String {
        match has_hash_tag(&self.0) {
            true => format!("{}:lockkeeper:{part}", self.0),
            false => format!("{{{}}}:lockkeeper:{part}", self.0),
        }
    }
}

/// Whether Redis Cluster takes a part of the name for the slot: what is between the first brace and the next
/// closing one, if that is not empty.
fn has_hash_tag(name: &str) -> bool {
    let Some((_, behind)) = name.split_once('{') else { return false };
    behind.split_once('}').is_some_and(|(tag, _)| !tag.is_empty())
}

impl Display for LockName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_lock_have_one_hash_tag() {
        let beside = |name: &str| LockName::new(name).unwrap().beside("queue");
        assert_eq!(beside("stock"), "{stock}:lockkeeper:queue");
        assert_eq!(beside("{shop}:stock"), "{shop}:stock:lockkeeper:queue");
    }

    #[test]
    fn no_two_names_share_a_key_beside_the_lock() {
        let beside = |name: &str| LockName::new(name).ok().map(|name| name.beside("queue"));
        for (one, other) in [("stock", "{stock}"), ("{shop}", "shop"), ("a b", "{a b}")] {
            assert_ne!(beside(one), beside(other), "{one} {other}");
        }
    }

    #[test]
    fn a_name_that_no_cluster_could_keep_together_is_refused() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "{}stock", "st}ock", "sto{ck", "a\nb", &long] {
            let error = LockName::new(name).unwrap_err();
            assert!(!error.advice.is_empty(), "{name:?}");
        }
        assert!(LockName::new(&"a".repeat(NAME_BYTES_MAX)).is_ok());
        assert!(LockName::new("Kasse 7 / Größe").is_ok());
    }
}
