use std::net::Ipv4Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::protocol::ErrorCode;

/// A set of permissions, as the bits the wire carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(pub i32);

impl Permissions {
    /// Read data and list children.
    pub const READ: Self = Self(1);
    /// Set data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Set the access list.
    pub const ADMIN: Self = Self(16);
    /// All of them.
    pub const ALL: Self = Self(31);
    /// The permissions for `getACL`: either of the two is enough.
    pub const READ_OR_ADMIN: Self = Self(17);

    fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// An identity: a scheme and an id in it. Both the answer to an `auth` request and one side of an [`Acl`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// `world`, `digest` or `ip`; `auth` in a request, where it means the requester.
    pub scheme: String,
    /// The id: `anyone`, `user:base64(sha1(user:password))`, an address with an optional prefix length.
    /// `None` is the wire's null, which only a request can carry: kazoo writes the empty id of `auth` so.
    pub id: Option<String>,
}

impl Identity {
    /// An identity of that scheme.
    pub fn new(scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), id: Some(id.into()) }
    }

    /// Everybody.
    pub fn anyone() -> Self {
        Self::new("world", "anyone")
    }

    /// The digest identity of `user:password`.
    ///
    /// ```
    /// use lockkeeper_testserver::tree::Identity;
    /// assert_eq!(Identity::digest("super:test").id.as_deref(), Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU="));
    /// ```
    pub fn digest(user_and_password: &str) -> Self {
        let user = user_and_password.split(':').next().unwrap_or_default();
        let hash = STANDARD.encode(Sha1::digest(user_and_password.as_bytes()));
        Self::new("digest", format!("{user}:{hash}"))
    }

    /// The name without its secret part, as `whoAmI` returns it.
    pub fn user(&self) -> &str {
        let id = self.id.as_deref().unwrap_or_default();
        if self.scheme == "digest" { id.split(':').next().unwrap_or_default() } else { id }
    }

    /// Whether the id has the form its scheme asks for.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidAcl`] if it has not. A null id where one is needed is
    /// [`ErrorCode::MarshallingError`].
    fn validate(&self) -> Result<(), ErrorCode> {
        let id = || self.id.as_deref().ok_or(ErrorCode::MarshallingError);
        let is_valid = match self.scheme.as_str() {
            "world" => id()? == "anyone",
            // Trailing empty parts do not count, a leading one does: `:hash` passes on the real server too.
            "digest" => id()?.trim_end_matches(':').split(':').count() == 2,
            "ip" => subnet(id()?).is_some(),
            _ => false,
        };
        is_valid.then_some(()).ok_or(ErrorCode::InvalidAcl)
    }

    fn matches(&self, requester: &Self) -> bool {
        if self.scheme != requester.scheme {
            return false;
        }
        let (Some(id), Some(own)) = (&self.id, &requester.id) else { return false };
        match self.scheme.as_str() {
            "digest" => id == own,
            "ip" => match (subnet(id), own.parse::<Ipv4Addr>()) {
                (Some((network, mask)), Ok(address)) => u32::from(address) & mask == network & mask,
                _ => false,
            },
            _ => false,
        }
    }
}

fn subnet(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    Some((address.parse::<Ipv4Addr>().ok()?.into(), mask))
}

/// One entry of an access list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acl {
    /// The permissions.
    pub permissions: Permissions,
    /// The identity.
    pub identity: Identity,
}

impl Acl {
    /// An entry of an access list.
    pub fn new(permissions: Permissions, identity: Identity) -> Self {
        Self { permissions, identity }
    }

    /// Whether a client with these identities has the permission.
    pub fn permit(list: &[Self], wanted: Permissions, requester: &[Identity]) -> bool {
        list.is_empty()
            || list.iter().filter(|acl| acl.permissions.overlaps(wanted)).any(|acl| {
                acl.identity == Identity::anyone() || requester.iter().any(|id| acl.identity.matches(id))
            })
    }

    /// The list as it is stored: duplicates removed, `auth` replaced by the requester's own identities.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::InvalidAcl`] when the list is empty, a scheme is unknown, an id has the wrong form, or
    /// `auth` means no identity. [`ErrorCode::MarshallingError`] for a null id that the real server cannot
    /// handle: of a scheme that needs an id, or in an entry that is compared with an earlier one.
    pub fn expand(list: &[Self], requester: &[Identity]) -> Result<Vec<Self>, ErrorCode> {
        let mut unique: Vec<&Self> = Vec::new();
        for acl in list {
            let is_alike = |other: &&Self| {
                other.permissions == acl.permissions && other.identity.scheme == acl.identity.scheme
            };
            if acl.identity.id.is_none() && unique.iter().any(is_alike) {
                return Err(ErrorCode::MarshallingError);
            }
            if !unique.contains(&acl) {
                unique.push(acl);
            }
        }
        let mut expanded = Vec::new();
        for acl in unique {
            if acl.identity.scheme != "auth" {
                acl.identity.validate()?;
                expanded.push(acl.clone());
                continue;
            }
            // An address is an identity, but it authenticates no client.
            let own = requester.iter().filter(|id| id.scheme == "digest");
            let before = expanded.len();
            expanded.extend(own.map(|id| Self::new(acl.permissions, id.clone())));
            if expanded.len() == before {
                return Err(ErrorCode::InvalidAcl);
            }
        }
        if expanded.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(expanded) }
    }

    /// The entry for a client without the `ADMIN` permission: the password hash is hidden.
    pub fn redacted(&self) -> Self {
        if self.identity.scheme != "digest" {
            return self.clone();
        }
        let user = self.identity.user();
        Self::new(self.permissions, Identity::new("digest", format!("{user}:x")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_matches_its_subnet_only() {
        let acl = [Acl::new(Permissions::READ, Identity::new("ip", "127.0.0.0/8"))];
        assert!(Acl::permit(&acl, Permissions::READ, &[Identity::new("ip", "127.1.2.3")]));
        assert!(!Acl::permit(&acl, Permissions::READ, &[Identity::new("ip", "10.0.0.1")]));
        assert!(!Acl::permit(&acl, Permissions::WRITE, &[Identity::new("ip", "127.1.2.3")]));
    }

    #[test]
    fn auth_means_the_requesters_digests() {
        let me = [Identity::new("ip", "127.0.0.1"), Identity::digest("me:secret")];
        let list = [Acl::new(Permissions::ALL, Identity::new("auth", ""))];
        assert_eq!(
            Acl::expand(&list, &me),
            Ok(vec![Acl::new(Permissions::ALL, Identity::digest("me:secret"))])
        );
        assert_eq!(Acl::expand(&list, &[Identity::new("ip", "127.0.0.1")]), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn unknown_schemes_and_malformed_ids_are_refused() {
        for (scheme, id) in
            [("sasl", "x"), ("world", "me"), ("digest", "nocolon"), ("digest", "a:b:c"), ("ip", "1.2.3")]
        {
            let list = [Acl::new(Permissions::ALL, Identity::new(scheme, id))];
            assert_eq!(Acl::expand(&list, &[]), Err(ErrorCode::InvalidAcl), "{scheme}:{id}");
        }
    }
}
