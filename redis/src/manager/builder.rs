use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_lock::Deadline;
use redis::ErrorKind;
use uuid::Uuid;

use super::handle::ConnectionManager;
use super::link::Link;
use super::shared::{ManagerPhase, Settings, Shared};
use super::wire::Target;
use super::{background, reconnect};
use crate::error::{ConfigError, ConnectError};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// The shortest lease: requests and clocks are not exact enough for a shorter one.
const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest lease.
const LEASE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Settings of a [`ConnectionManager`]. Every setting has a default.
#[derive(Clone)]
#[must_use = "nothing happens before connect()"]
pub struct ConnectionManagerBuilder {
    url: String,
    #[cfg(feature = "cluster")]
    other_nodes: Option<Vec<String>>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    lease: Duration,
    operation_timeout: Option<Duration>,
    connect_deadline: Duration,
    token_generation: u32,
}

impl ConnectionManager {
    /// Starts to set up a manager.
    pub fn builder(url: &str) -> ConnectionManagerBuilder {
        ConnectionManagerBuilder::new(url)
    }
}

impl ConnectionManagerBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            #[cfg(feature = "cluster")]
            other_nodes: None,
            #[cfg(feature = "tls")]
            tls: None,
            lease: Duration::from_secs(15),
            operation_timeout: None,
            connect_deadline: Duration::from_secs(15),
            token_generation: 0,
        }
    }

    /// How long the server keeps a lock without a sign of life of its holder. Default 15 s. From 100 ms to a
    /// day.
    ///
    /// A crashed holder's lock is free after this time. A holder that cannot reach the server loses the lock
    /// after a little less. Holders renew their leases every third of it.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// The time limit of a call that does not wait for other contenders: `try_acquire`, `release`,
    /// `available`. Default: the lease.
    pub fn operation_timeout(self, timeout: Duration) -> Self {
        Self { operation_timeout: Some(timeout), ..self }
    }

    /// How long [`connect`](Self::connect) tries before it gives up. Default 15 s.
    pub fn connect_deadline(self, timeout: Duration) -> Self {
        Self { connect_deadline: timeout, ..self }
    }

    /// The [generation](crate::FencingToken::generation) of the fencing tokens. Default: 0.
    ///
    /// Raise it by one, in every process that uses the server, when the server lost data or was restored from
    /// a backup: each token of a later generation is greater than all tokens before.
    pub fn token_generation(self, generation: u32) -> Self {
        Self { token_generation: generation, ..self }
    }

    /// Connects to a Redis Cluster: the builder's URL and these name some of its nodes. All keys of a lock
    /// are in one slot, so each lock is as safe as the shard that has it.
    #[cfg(feature = "cluster")]
    pub fn cluster<'a>(self, other_nodes: impl IntoIterator<Item = &'a str>) -> Self {
        let other_nodes = other_nodes.into_iter().map(str::to_owned).collect();
        Self { other_nodes: Some(other_nodes), ..self }
    }

    /// Whose certificates are trusted, and which one is presented. Default: the certificate authorities of
    /// the system, and none. For `rediss://` URLs alone.
    #[cfg(feature = "tls")]
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] if the URL is malformed or a setting is outside its range.
    /// [`ConnectError::Refused`] if the server does not accept the credentials, or does not have the
    /// database.
    /// [`ConnectError::Timeout`] if no server answered in time, or none with a certificate that is trusted.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the connection is closed.
    pub async fn connect(self) -> Result<ConnectionManager, ConnectError> {
        let target = self.target()?;
        let (link, reports) = Link::new(format!("lockkeeper:{}", Uuid::new_v4().simple()));
        let (shared, jobs) = Shared::new(self.settings()?, link);
        let shared = Arc::new(shared);
        // Ends the tasks if this future is dropped.
        let manager = ConnectionManager::new(Arc::clone(&shared));
        let deadline = Deadline::after(self.connect_deadline);
        let refused = tokio::select! {
            biased;
            refused = refused(&target, &shared) => refused,
            () = deadline.passed() => None,
        };
        if let Some(cause) = refused {
            return Err(ConnectError::Refused { cause });
        }
        tokio::spawn(reconnect::run(Arc::clone(&shared), target, reports));
        tokio::spawn(background::renew(Arc::clone(&shared)));
        tokio::spawn(background::clean_up(Arc::clone(&shared), jobs));
        tokio::select! {
            biased;
            _ = shared.link.connection() => Ok(manager),
            () = deadline.passed() => {
                shared.advance(ManagerPhase::Stopped);
                let cause = shared.link.last_error().unwrap_or_else(|| "no answer".to_owned());
                Err(ConnectError::Timeout { waited: deadline.waited(), cause })
            }
        }
    }

    fn target(&self) -> Result<Target, ConfigError> {
        let others: &[String] = &[];
        #[cfg(feature = "cluster")]
        let others = self.other_nodes.as_deref().unwrap_or(others);
        let urls: Vec<&str> = std::iter::once(&self.url).chain(others).map(String::as_str).collect();
        let target = Target::new(&urls, self.is_cluster()).map_err(|error| ConfigError {
            setting: "url",
            // The text of the error has no credentials, which the URL may have.
            value: error.to_string(),
            advice: "use redis://[user:password@]host[:port][/database]; rediss:// needs the feature `tls`",
        })?;
        #[cfg(feature = "tls")]
        let target = match &self.tls {
            Some(_) if urls.iter().any(|url| !url.starts_with("rediss://")) => {
                let advice = "use a rediss:// URL, or leave the TLS settings out";
                return Err(ConfigError {
                    setting: "tls",
                    value: "set for a URL without it".to_owned(),
                    advice,
                });
            }
            Some(tls) => target.with_certificates(tls.certificates()?),
            None => target,
        };
        Ok(target)
    }

    fn is_cluster(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.other_nodes.is_some();
        #[cfg(not(feature = "cluster"))]
        false
    }

    fn settings(&self) -> Result<Settings, ConfigError> {
        if self.lease < LEASE_MIN || self.lease > LEASE_MAX {
            return Err(ConfigError {
                setting: "lease",
                value: format!("{:?}", self.lease),
                advice: "use 100 milliseconds to a day",
            });
        }
        let operation_timeout = self.operation_timeout.unwrap_or(self.lease);
        if operation_timeout.is_zero() {
            return Err(ConfigError {
                setting: "operation_timeout",
                value: "no time".to_owned(),
                advice: "leave time for a round trip",
            });
        }
        let token_generation = self.token_generation;
        Ok(Settings { lease: self.lease, operation_timeout, token_generation })
    }
}

impl Debug for ConnectionManagerBuilder {
    /// Without the URL, which may have a password.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionManagerBuilder")
            .field("lease", &self.lease)
            .field("operation_timeout", &self.operation_timeout)
            .field("connect_deadline", &self.connect_deadline)
            .field("token_generation", &self.token_generation)
            .finish_non_exhaustive()
    }
}

/// The answer of a server that another attempt does not change.
async fn refused(target: &Target, shared: &Shared) -> Option<String> {
    let (pushes, _messages) = tokio::sync::mpsc::unbounded_channel();
    let error = target.connect(pushes, shared.link.channel()).await.err()?;
    let is_final = matches!(
        error.kind(),
        ErrorKind::AuthenticationFailed | ErrorKind::RESP3NotSupported | ErrorKind::InvalidClientConfig
    ) || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
        // The client's words for a number of a database that the server does not have.
        || error.to_string().contains("refused to switch database");
    is_final.then(|| error.to_string())
}
