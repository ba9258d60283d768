use std::fmt::{self, Debug, Formatter};

/// The operations on a node that an identity may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions(pub(crate) u32);

impl Permissions {
    /// Read data and list children.
    pub const READ: Self = Self(1);
    /// Set data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Change the access list.
    pub const ADMIN: Self = Self(16);
    /// All of them.
    pub const ALL: Self = Self(31);

    /// Whether all of `other` are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An access list: that of every node that the manager creates, contenders and their parents, or that of one
/// node ([`Znodes::acl`](crate::Znodes::acl)).
///
/// Default: open to everyone, as in Curator. If another identity must not be able to break a lock, the list
/// has to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    pub(crate) entries: Vec<(Permissions, String, String)>,
}

impl Acl {
    /// Everyone may do everything.
    #[must_use]
    pub fn open() -> Self {
        Self::new(Permissions::ALL, "world", "anyone")
    }

    /// Only the identities that this session is authenticated with may do anything. Needs
    /// [`digest_auth`](crate::ConnectionManagerBuilder::digest_auth) or another authentication.
    #[must_use]
    pub fn creator_only() -> Self {
        Self::new(Permissions::ALL, "auth", "")
    }

    /// One entry: `permissions` for the identity `id` of `scheme`, such as `digest` or `ip`.
    #[must_use]
    pub fn new(permissions: Permissions, scheme: &str, id: &str) -> Self {
        Self { entries: vec![(permissions, scheme.to_owned(), id.to_owned())] }
    }

    /// The entries: the permissions, the scheme and the id of each.
    pub fn entries(&self) -> impl Iterator<Item = (Permissions, &str, &str)> {
        self.entries.iter().map(|(permissions, scheme, id)| (*permissions, scheme.as_str(), id.as_str()))
    }

    /// Whether it has an entry for the identities of the session that creates the node.
    pub(crate) fn names_the_creator(&self) -> bool {
        self.entries.iter().any(|(_, scheme, _)| scheme == "auth")
    }

    /// A further entry.
    #[must_use]
    pub fn and(mut self, permissions: Permissions, scheme: &str, id: &str) -> Self {
        self.entries.push((permissions, scheme.to_owned(), id.to_owned()));
        self
    }
}

impl Default for Acl {
    fn default() -> Self {
        Self::open()
    }
}

/// How a connection authenticates.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) scheme: String,
    pub(crate) secret: Vec<u8>,
}

impl Debug for Credentials {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
