//! One rate limiter for each key.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::{ConfigError, ConnectionManager, Error, IntoPath, ZnodePath};

use super::handle::RateLimiter;

/// Rate limiters with the same numbers, one for each key: at most a given number of starts *of each customer*
/// in any window of time.
///
/// The limiter of a key is a [`RateLimiter`] like any other, with its own queue and its own window: keys do
/// not wait for each other. A clone is cheap.
///
/// # Cost
///
/// The first start of a key whose starts count no more is one request, and the end of its window is four.
/// Other starts cost as those of a [`RateLimiter`]. A key whose starts count no more has no node and takes no
/// memory. Only the node of a key that a crashed process used last stays: call [`sweep`](Self::sweep) from
/// time to time, such as once a day from one process.
///
/// # Layout
///
/// `<path>/<key>` is the path of the limiter of a key. Each byte of the key other than a letter, a digit, `-`
/// and `_` of ASCII is written as `%` and two hexadecimal digits.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper::{ConnectionManager, KeyedRateLimiter};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let calls = KeyedRateLimiter::new(&manager, "/limits/customers", 1, Duration::from_secs(60))?;
///
/// let of_anna = calls.of("anna@example.org")?;
/// assert!(of_anna.try_admit().await?.admitted().is_some());
/// assert!(of_anna.try_admit().await?.retry_after().is_some());
/// assert!(calls.of("bert@example.org")?.try_admit().await?.admitted().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct KeyedRateLimiter {
    manager: ConnectionManager,
    path: ZnodePath,
    starts: u32,
    window: Duration,
    grace: Option<Duration>,
    ahead: u32,
}

impl KeyedRateLimiter {
    /// Makes the limiters below `path`, below the manager's chroot: at most `starts` of a key in any
    /// `window`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if `starts` or `window` is zero.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        starts: u32,
        window: Duration,
    ) -> Result<Self, Error> {
        let path = path.into_path()?;
        // Checks the numbers.
        RateLimiter::new(manager, path.clone(), starts, window)?;
        Ok(Self { manager: manager.clone(), path, starts, window, grace: None, ahead: 0 })
    }

    /// Sets the time for which an admission is fresh: see [`RateLimiter::with_grace`], also for the default.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// Takes up to so many starts of a key before a call asks for them: see [`RateLimiter::with_ahead`], also
    /// for what it costs. Default: none.
    ///
    /// All tasks of the process share the starts of a key, whatever limiter [`of`](Self::of) gave them. A key
    /// that nobody uses has none.
    #[must_use]
    pub fn with_ahead(self, starts: u32) -> Self {
        Self { ahead: starts, ..self }
    }

    /// The path above the limiters, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The number of starts of a key that are admitted in any [window](Self::window).
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// The length of the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The limiter of a key. Any text that is not empty is a key. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the key is empty, or too long for a path.
    pub fn of(&self, key: &str) -> Result<RateLimiter, Error> {
        if key.is_empty() {
            let advice = "give the key one character or more";
            return Err(ConfigError::Setting { name: "key", value: "\"\"".to_owned(), advice }.into());
        }
        self.at(self.path.child(&encode(key))?)
    }

    /// Deletes the nodes of the keys whose starts count no more, and returns their number: see
    /// [`RateLimiter::sweep`].
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::sweep`].
    ///
    /// # Cancel safety
    ///
    /// As [`RateLimiter::sweep`].
    pub async fn sweep(&self) -> Result<u32, Error> {
        let mut deleted = 0_u32;
        for name in self.manager.znodes().children(&self.path).await?.unwrap_or_default() {
            deleted += u32::from(self.at(self.path.child(&name)?)?.sweep().await?);
        }
        Ok(deleted)
    }

    fn at(&self, path: ZnodePath) -> Result<RateLimiter, Error> {
        let limiter = RateLimiter::new(&self.manager, path, self.starts, self.window)?;
        let limiter = limiter.with_ahead(self.ahead);
        Ok(match self.grace {
            Some(grace) => limiter.with_grace(grace),
            None => limiter,
        })
    }
}

impl Debug for KeyedRateLimiter {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyedRateLimiter")
            .field("path", &self.manager.whole_path(&self.path))
            .field("starts", &self.starts)
            .field("window", &self.window)
            .field("grace", &self.grace)
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}

/// The name of the node of a key. Different keys have different names.
fn encode(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_is_a_name_and_no_two_keys_have_one_name(one in ".{1,20}", other in ".{1,20}") {
            let root: ZnodePath = "/limits".parse().unwrap();
            prop_assert!(root.child(&encode(&one)).is_ok(), "{one:?}");
            prop_assert_eq!(one == other, encode(&one) == encode(&other));
        }
    }

    #[test]
    fn keys_that_are_no_names_are_written_with_hexadecimal_digits() {
        for (key, name) in [
            ("customer-7", "customer-7"),
            (".", "%2e"),
            ("a/b", "a%2fb"),
            ("%2e", "%252e"),
            ("zookeeper", "zookeeper"),
            ("ü", "%c3%bc"),
        ] {
            assert_eq!(encode(key), name);
        }
    }
}
