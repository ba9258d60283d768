use std::fmt::{self, Display, Formatter};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// An absolute path of a znode, below the chroot of the manager that it is given to. It is checked once and
/// valid from then on. Clones are cheap and share the text.
///
/// Every path that a call returns can go into any call again, and names the same node. Errors and logs show
/// the [`WholePath`](crate::WholePath) instead.
///
/// Parts are separated by `/`. There is no empty part, no `.`, no `..`, no trailing slash, and none of the
/// characters that the server refuses: U+0000–U+001F, U+007F–U+009F, U+E000–U+F8FF, and all from U+FFF0 on.
/// Source: `PathUtils.validatePath` of Apache ZooKeeper; Java has a character above U+FFFF as two surrogates.
///
/// # Examples
///
/// ```
/// use lockkeeper_core::ZnodePath;
///
/// let path: ZnodePath = "/locks/train-7".parse()?;
/// assert_eq!(path.name(), "train-7");
/// assert!("locks/train-7".parse::<ZnodePath>().is_err());
/// # Ok::<(), lockkeeper_core::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZnodePath(Arc<str>);

/// The longest accepted path, in bytes.
///
/// The server's own limit is its request size (`jute.maxbuffer`, 1 MiB by default). A lock path of this
/// length is a mistake, and every watch on it is sent again at each reconnect.
pub const PATH_BYTES_MAX: usize = 4096;

impl ZnodePath {
    /// The path as text, always starting with `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part of the path; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The path one level up, or `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        match self.0.rsplit_once('/') {
            Some(("", _)) | None => Some(Self("/".into())),
            Some((parent, _)) => Some(Self(parent.into())),
        }
    }

    /// Whether this is `/`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// The child called `name`.
    ///
    /// # Errors
    ///
    /// [`PathError`] when `name` is not a valid single part.
    pub fn child(&self, name: &str) -> Result<Self, PathError> {
        if name.is_empty() {
            return Err(PathError::new(name, Flaw::Empty));
        }
        if name.contains('/') {
            return Err(PathError::new(name, Flaw::SlashInName));
        }
        self.join(&Self::from_str(&format!("/{name}"))?)
    }

    /// This path with `below` appended, as a chroot is prepended to a path.
    ///
    /// # Errors
    ///
    /// [`PathError`] when the two together are longer than [`PATH_BYTES_MAX`].
    pub fn join(&self, below: &Self) -> Result<Self, PathError> {
        let joined = match (self.is_root(), below.is_root()) {
            (true, _) => return Ok(below.clone()),
            (_, true) => return Ok(self.clone()),
            _ => format!("{}{}", self.0, below.0),
        };
        if joined.len() > PATH_BYTES_MAX {
            return Err(PathError::new(&joined, Flaw::TooLong));
        }
        Ok(Self(joined.into()))
    }

    /// What follows this path in `whole`, which is below it: the opposite of [`join`](Self::join).
    pub(crate) fn strip<'a>(&self, whole: &'a str) -> &'a str {
        if self.is_root() {
            return whole;
        }
        match whole.strip_prefix(self.as_str()) {
            Some("") => "/",
            Some(below) if below.starts_with('/') => below,
            _ => whole,
        }
    }

    /// The path of a node that the server named or created, which has checked it.
    pub(crate) fn of_node(path: &str) -> Self {
        Self(path.into())
    }

    /// The path of a child whose name came from the server, which has already checked it.
    pub(crate) fn listed_child(&self, name: &str) -> String {
        if self.is_root() { format!("/{name}") } else { format!("{}/{name}", self.0) }
    }
}

impl FromStr for ZnodePath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        match flaw(path) {
            None => Ok(Self(path.into())),
            Some(flaw) => Err(PathError::new(path, flaw)),
        }
    }
}

impl TryFrom<&str> for ZnodePath {
    type Error = PathError;

    fn try_from(path: &str) -> Result<Self, PathError> {
        path.parse()
    }
}

impl TryFrom<String> for ZnodePath {
    type Error = PathError;

    fn try_from(path: String) -> Result<Self, PathError> {
        path.parse()
    }
}

impl TryFrom<&String> for ZnodePath {
    type Error = PathError;

    fn try_from(path: &String) -> Result<Self, PathError> {
        path.parse()
    }
}

impl TryFrom<&Self> for ZnodePath {
    type Error = PathError;

    fn try_from(path: &Self) -> Result<Self, PathError> {
        Ok(path.clone())
    }
}

/// A value that a call takes as a path: a `&str`, a `String`, a [`ZnodePath`], or a reference to one of
/// these.
///
/// Implemented by everything that [`TryInto`] makes a [`ZnodePath`] of.
pub trait IntoPath {
    /// The path.
    ///
    /// # Errors
    ///
    /// [`PathError`] when the text is no path.
    fn into_path(self) -> Result<ZnodePath, PathError>;
}

impl<P> IntoPath for P
where
    P: TryInto<ZnodePath>,
    PathError: From<P::Error>,
{
    fn into_path(self) -> Result<ZnodePath, PathError> {
        self.try_into().map_err(PathError::from)
    }
}

impl PartialEq<str> for ZnodePath {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ZnodePath {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for ZnodePath {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<ZnodePath> for str {
    fn eq(&self, other: &ZnodePath) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<ZnodePath> for String {
    fn eq(&self, other: &ZnodePath) -> bool {
        self == other.as_str()
    }
}

impl From<std::convert::Infallible> for PathError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// A path can be read as the text that it shares.
impl Deref for ZnodePath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ZnodePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Display for ZnodePath {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why a path is invalid, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("path {path:?}: {flaw}")]
pub struct PathError {
    path: String,
    flaw: Flaw,
}

impl PathError {
    fn new(path: &str, flaw: Flaw) -> Self {
        // The error is printed: a path of a megabyte must not fill the log.
        Self { path: path.chars().take(200).collect(), flaw }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Flaw {
    #[error("is empty; give an absolute path such as /locks/a")]
    Empty,
    #[error("does not start with '/'; give an absolute path")]
    Relative,
    #[error("ends with '/'; leave the last slash out")]
    TrailingSlash,
    #[error("has an empty part ('//'); leave one slash out")]
    EmptyPart,
    #[error("has a '.' or '..' part; ZooKeeper has no relative paths")]
    DotPart,
    #[error("has a character ZooKeeper refuses (control, private use, or from U+FFF0 on, as emoji)")]
    BadCharacter,
    #[error("has a '/' in a single name; give one part only")]
    SlashInName,
    #[error("is longer than {PATH_BYTES_MAX} bytes; use a shorter one")]
    TooLong,
}

fn flaw(path: &str) -> Option<Flaw> {
    let Some(parts) = path.strip_prefix('/') else {
        return Some(if path.is_empty() { Flaw::Empty } else { Flaw::Relative });
    };
    if path.len() > PATH_BYTES_MAX {
        return Some(Flaw::TooLong);
    }
    if parts.is_empty() {
        return None;
    }
    if parts.ends_with('/') {
        return Some(Flaw::TrailingSlash);
    }
    if path.chars().any(is_refused) {
        return Some(Flaw::BadCharacter);
    }
    parts.split('/').find_map(|part| match part {
        "" => Some(Flaw::EmptyPart),
        "." | ".." => Some(Flaw::DotPart),
        _ => None,
    })
}

fn is_refused(c: char) -> bool {
    // The server refuses the private-use area as well, and what Java has as two surrogates.
    let is_control = matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    is_control || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn absolute_paths_are_taken_and_split() {
        for (path, name, parent) in [
            ("/", "", None),
            ("/a", "a", Some("/")),
            ("/a/b c", "b c", Some("/a")),
            ("/ä/…", "…", Some("/ä")),
        ] {
            let parsed: ZnodePath = path.parse().unwrap();
            assert_eq!(parsed.name(), name);
            assert_eq!(parsed.parent().as_ref().map(ZnodePath::as_str), parent);
        }
    }

    #[test]
    fn bad_paths_are_refused_with_what_to_change() {
        for (path, word) in [
            ("", "empty"),
            ("a", "absolute"),
            ("/a/", "last slash"),
            ("//", "last slash"),
            ("/a//b", "'//'"),
            ("/a/./b", "'.'"),
            ("/..", "'..'"),
            ("/a\0", "character"),
            ("/a\u{7f}", "character"),
            ("/\u{1f600}", "character"),
        ] {
            let message = path.parse::<ZnodePath>().unwrap_err().to_string();
            assert!(message.contains(word), "{path:?}: {message}");
        }
        assert!(format!("/{}", "x".repeat(PATH_BYTES_MAX)).parse::<ZnodePath>().is_err());
    }

    proptest! {
        /// For any text: an accepted path is valid, and so is every path that is derived from it.
        #[test]
        fn no_text_panics_and_an_accepted_one_is_a_path(text in "(/?[a./\\PC\0]{0,4}){0,5}|\\PC*") {
            if let Ok(path) = text.parse::<ZnodePath>() {
                prop_assert!(path.as_str().starts_with('/') && (path.is_root() || !text.ends_with('/')));
                prop_assert!(
                    text.split('/').skip(1).all(|part| path.is_root() || !["", ".", ".."].contains(&part))
                );
                let again = path.parent().map(|parent| parent.child(path.name()));
                prop_assert!(again.is_none_or(|again| again == Ok(path)));
            }
        }
    }

    #[test]
    fn a_chroot_is_prepended() {
        let root: ZnodePath = "/".parse().unwrap();
        let app: ZnodePath = "/app".parse().unwrap();
        let lock: ZnodePath = "/lock".parse().unwrap();
        assert_eq!(app.join(&lock).unwrap().as_str(), "/app/lock");
        assert_eq!(root.join(&lock).unwrap(), lock);
        assert_eq!(app.join(&root).unwrap(), app);
        for (chroot, whole, below) in
            [(&root, "/app/lock", "/app/lock"), (&app, "/app/lock", "/lock"), (&app, "/app", "/")]
        {
            assert_eq!(chroot.strip(whole), below);
        }
        assert_eq!(root.child("x").unwrap().as_str(), "/x");
        assert!(app.child("x/y").is_err());
        assert!(app.child("").is_err() && root.child("").is_err());
        assert_eq!(root.listed_child("x"), "/x");
    }
}
