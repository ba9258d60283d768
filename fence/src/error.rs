use std::error::Error;

use lockkeeper_lock::FencingToken;
use thiserror::Error as ThisError;

/// A holder is late: the resource has seen a newer one. Nothing that it writes may be kept.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error(
    "the fencing token {token} is stale: {resource:?} has seen {newer}; roll back, \
     and acquire the lock again before the next attempt"
)]
#[non_exhaustive]
pub struct Stale {
    /// The resource that refuses.
    pub resource: String,
    /// The token that it refuses.
    pub token: FencingToken,
    /// The newest token that it has seen.
    pub newer: FencingToken,
}

impl Stale {
    /// For authors of stores.
    #[must_use]
    pub fn new(resource: &str, token: FencingToken, newer: FencingToken) -> Self {
        Self { resource: resource.to_owned(), token, newer }
    }
}

/// A token was not admitted. Whatever the variant is, roll the transaction back.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum FenceError {
    /// The holder is late.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The name of the resource cannot be stored. Nothing was sent.
    #[error("{resource:?} is no name of a resource: give it 1 to 255 bytes, none of them zero")]
    InvalidResource {
        /// The name.
        resource: String,
    },
    /// The store did not decide.
    #[error("the token for {resource:?} is not checked: {source}; {}", advice(*.is_transient))]
    NotChecked {
        /// The resource.
        resource: String,
        /// Whether the same transaction may succeed if it is begun again.
        is_transient: bool,
        /// What the store says: an error of sqlx for the SQL databases.
        source: Box<dyn Error + Send + Sync>,
    },
}

fn advice(is_transient: bool) -> &'static str {
    if is_transient {
        "another transaction was at the resource at the same time; roll back, and begin again"
    } else {
        "roll back; the fence needs its table or its nodes, and the right to read and write them"
    }
}

impl FenceError {
    /// Whether the holder is late: the resource has seen a newer token.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale(_))
    }

    /// Whether the same work may succeed in another transaction: the database has refused this one because of
    /// a concurrent one (a serialization failure, a deadlock, a database that is busy).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NotChecked { is_transient: true, .. })
    }
}

/// What every store takes as the name of a resource.
#[cfg(any(test, feature = "http", feature = "__sql"))]
pub(crate) fn checked_name(resource: &str) -> Result<(), FenceError> {
    let is_valid = (1..=255).contains(&resource.len()) && !resource.contains('\0');
    if is_valid { Ok(()) } else { Err(FenceError::InvalidResource { resource: resource.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_resource_has_1_to_255_bytes_and_none_is_zero() {
        for name in ["a", "stock/train 7", "ä", &"a".repeat(255)] {
            assert!(checked_name(name).is_ok(), "{name:?}");
        }
        for name in ["", "a\0b", &"a".repeat(256), &"ä".repeat(128)] {
            let refused = checked_name(name).unwrap_err();
            assert!(!refused.is_stale() && !refused.is_transient());
            assert!(refused.to_string().contains("1 to 255 bytes"), "{refused}");
        }
    }

    #[test]
    fn a_stale_token_is_an_error_that_names_the_newer_one() {
        let stale = Stale::new("stock", FencingToken::new(4), FencingToken::new(5));
        let refused = FenceError::from(stale);
        assert!(refused.is_stale() && !refused.is_transient());
        let text = refused.to_string();
        assert!(text.contains("0x4.0 is stale") && text.contains("has seen 0x5.0"), "{text}");
    }
}
