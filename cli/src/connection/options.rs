//! The settings of the connection, from all of their sources.

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lockkeeper::config::{Acl, ConnectionManagerBuilder};
use lockkeeper::{ConnectionManager, Error};

use super::granted::{OtherTimeout, other_timeout};
use crate::connection_file::ConnectionFile;
use crate::exit::{Exit, Failure};
use crate::four_letter_words::chroot;
use crate::signals::Signals;
use crate::span;

/// A time to wait for a lock leaves a server at least this long.
const CONNECT_MIN: Duration = Duration::from_secs(1);

/// Waits for an answer of the servers no longer than `limit`, or for [`CONNECT_MIN`] if that is longer.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    asked: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return asked.await };
    let limit = limit.max(CONNECT_MIN);
    let silent = |_| Err(Failure::new(Exit::UNAVAILABLE, "no server answers in time".to_owned()));
    tokio::time::timeout(limit, asked).await.unwrap_or_else(silent)
}

/// How long the servers may take to confirm the end of a session in which nothing is held.
const CLOSING: Duration = Duration::from_millis(500);

/// How the servers are reached. A flag wins over the environment, and the environment over the file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionOptions {
    /// The servers, as host:port,host:port/chroot; tcp+tls://host:port for TLS
    #[arg(long, global = true, value_name = "SERVERS", env = "LOCKKEEPER_CONNECT")]
    connect: Option<String>,

    /// A TOML file with the same settings: connect, auth, acl, session-timeout, connect-timeout, tick-time,
    /// token-generation, tls-ca, tls-cert, tls-key
    #[arg(long, global = true, value_name = "FILE", env = "LOCKKEEPER_CONFIG")]
    config: Option<PathBuf>,

    /// Authenticate with the digest scheme; other users of this machine can read the command line, so prefer
    /// the environment or the file
    #[arg(
        long,
        global = true,
        value_name = "USER:PASSWORD",
        env = "LOCKKEEPER_AUTH",
        hide_env_values = true
    )]
    auth: Option<Secret>,

    /// Who may touch the nodes that are created: everyone ("open"), or the authenticated user alone
    /// ("creator") [default: open]
    #[arg(long, global = true, value_name = "ACL")]
    acl: Option<AccessList>,

    /// How long the servers keep the session of a silent client: the lock of a dead machine is free after
    /// this time [default: 20s]
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        env = "LOCKKEEPER_SESSION_TIMEOUT",
        value_parser = span::parse
    )]
    session_timeout: Option<Duration>,

    /// How long to try to reach a server [default: 10s]
    #[arg(long, global = true, value_name = "TIME", value_parser = span::parse)]
    connect_timeout: Option<Duration>,

    /// The tickTime of the servers, or more [default: 3s]
    #[arg(long, global = true, value_name = "TIME", env = "LOCKKEEPER_TICK_TIME", value_parser = span::parse)]
    tick_time: Option<Duration>,

    /// The generation of the fencing tokens: one more after each restore of the servers' data [default: 0]
    #[arg(long, global = true, value_name = "N", env = "LOCKKEEPER_TOKEN_GENERATION")]
    token_generation: Option<u32>,

    /// The certificate authorities that signed the servers' certificates, in PEM form [default: those that
    /// the system trusts]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,

    /// The certificate of this client, in PEM form
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) tls_cert: Option<PathBuf>,

    /// The key of that certificate, in PEM form
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) tls_key: Option<PathBuf>,
}

/// What became of the wish for a session.
pub(crate) enum Opened {
    Session(ConnectionManager),
    /// A signal came first.
    Signalled(Exit),
}

/// Who may touch the nodes that are created.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AccessList {
    Open,
    Creator,
}

/// A user and a password, or what was meant to be: no message shows any of it.
#[derive(Clone)]
struct Secret(String);

impl ConnectionOptions {
    /// Opens a session, does the work, and closes the session: otherwise the servers keep it for a session
    /// timeout. A signal ends the work.
    pub(crate) async fn with_session(
        &self,
        work: impl AsyncFnOnce(&ConnectionManager) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        self.with_session_within(None, work).await
    }

    /// The same, with a limit for the connect: see [`open`](Self::open).
    pub(crate) async fn with_session_within(
        &self,
        limit: Option<Duration>,
        work: impl AsyncFnOnce(&ConnectionManager) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let mut signals = Signals::listen()?;
        let manager = match self.open(limit, &mut signals).await? {
            Opened::Session(manager) => manager,
            Opened::Signalled(exit) => return Ok(exit),
        };
        let work = async {
            match within(limit, self.missing_chroot(&manager)).await? {
                Some(missing) => Err(Failure::usage(format!("{missing}: check the end of --connect"))),
                None => work(&manager).await,
            }
        };
        let ended = tokio::select! {
            biased;
            ended = work => ended,
            signal = signals.next() => Ok(Exit::of_signal(signal.as_raw())),
        };
        // Nothing is held. Without an answer the servers end the session later.
        let _ = manager.shutdown_within(CLOSING).await;
        ended
    }

    /// That the chroot of the connect string does not exist. Without a chroot nothing is asked.
    pub(crate) async fn missing_chroot(
        &self,
        manager: &ConnectionManager,
    ) -> Result<Option<String>, Failure> {
        let settings = self.with_file()?;
        let Some(chroot) = chroot(settings.servers()?) else { return Ok(None) };
        let is_missing = match manager.znodes().read("/").await {
            Ok(found) => found.is_none(),
            // Only a node that exists has an access list.
            Err(Error::Refused { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        Ok(is_missing.then(|| format!("the chroot {chroot} does not exist")))
    }

    /// That the servers granted another session timeout than the one that was asked for. Nothing is sent.
    pub(crate) fn other_timeout(&self, granted: Duration) -> Result<Option<OtherTimeout>, Failure> {
        let settings = self.with_file()?;
        Ok(other_timeout(settings.session_timeout(), granted, settings.tick_time()))
    }

    /// Opens a session, at most within `limit`, and at most within a second if that is shorter: a caller that
    /// does not want to wait for a lock still wants to know whether it is free.
    ///
    /// The servers may have opened the session when a signal comes, although their answer has not: it is
    /// closed then, too.
    pub(crate) async fn open(
        &self,
        limit: Option<Duration>,
        signals: &mut Signals,
    ) -> Result<Opened, Failure> {
        let mut connecting = pin!(self.builder(limit)?.connect());
        let signal = tokio::select! {
            biased;
            signal = signals.next() => signal,
            connected = &mut connecting => return Ok(Opened::Session(connected?)),
        };
        if let Ok(Ok(manager)) = tokio::time::timeout(CLOSING, connecting).await {
            let _ = manager.shutdown_within(CLOSING).await;
        }
        Ok(Opened::Signalled(Exit::of_signal(signal.as_raw())))
    }

    /// Finds a wrong setting. Sends nothing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.builder(None).map(|_| ())
    }

    fn builder(&self, limit: Option<Duration>) -> Result<ConnectionManagerBuilder, Failure> {
        let settings = self.with_file()?;
        let servers = settings.servers()?;
        let connect_timeout = settings.connect_timeout.unwrap_or(Duration::from_secs(10));
        let connect_timeout =
            limit.map_or(connect_timeout, |limit| connect_timeout.min(limit.max(CONNECT_MIN)));
        let mut builder = ConnectionManager::builder(servers)
            .connect_deadline(connect_timeout)
            .session_timeout(settings.session_timeout())
            .tick_time(settings.tick_time())
            .token_generation(settings.token_generation.unwrap_or(0));
        if let Some(Secret(text)) = &settings.auth {
            let (user, password) = text.split_once(':').ok_or_else(|| {
                Failure::usage("--auth, LOCKKEEPER_AUTH or auth of the file has no colon; give user:password")
            })?;
            builder = builder.digest_auth(user, password);
        }
        if let Some(AccessList::Creator) = settings.acl {
            builder = builder.acl(Acl::creator_only());
        }
        settings.secure(builder)
    }

    /// The session timeout to ask for. Default: 20 s, twice the usual `syncLimit × tickTime` of the
    /// servers, so that a short partition of one server costs no session.
    pub(crate) fn session_timeout(&self) -> Duration {
        self.session_timeout.unwrap_or(Duration::from_secs(20))
    }

    /// The servers' `tickTime`, as the client has it. Default: the library's, 3 s.
    pub(crate) fn tick_time(&self) -> Duration {
        self.tick_time.unwrap_or(Duration::from_secs(3))
    }

    /// The connect string.
    pub(crate) fn servers(&self) -> Result<&str, Failure> {
        self.connect.as_deref().ok_or_else(|| {
            Failure::usage(
                "no servers are named: give --connect host:port,host:port or set LOCKKEEPER_CONNECT",
            )
        })
    }

    /// These settings, completed by the file.
    pub(crate) fn with_file(&self) -> Result<Self, Failure> {
        let Some(path) = &self.config else { return Ok(self.clone()) };
        let file = ConnectionFile::read(path)?;
        let span = |name: &str, text: Option<String>| {
            let bad = |error| Failure::usage(format!("{}: {name}: {error}", path.display()));
            text.map(|text| span::parse(&text).map_err(bad)).transpose()
        };
        let acl = |text: String| {
            AccessList::from_str(&text, false).map_err(|_| {
                Failure::usage(format!("{}: acl is neither \"open\" nor \"creator\"", path.display()))
            })
        };
        let own = self.clone();
        Ok(Self {
            connect: own.connect.or(file.connect),
            config: None,
            auth: own.auth.or_else(|| file.auth.map(Secret)),
            acl: own.acl.or(file.acl.map(acl).transpose()?),
            session_timeout: own.session_timeout.or(span("session-timeout", file.session_timeout)?),
            connect_timeout: own.connect_timeout.or(span("connect-timeout", file.connect_timeout)?),
            tick_time: own.tick_time.or(span("tick-time", file.tick_time)?),
            token_generation: own.token_generation.or(file.token_generation),
            tls_ca: own.tls_ca.or(file.tls_ca),
            tls_cert: own.tls_cert.or(file.tls_cert),
            tls_key: own.tls_key.or(file.tls_key),
        })
    }
}

impl Debug for Secret {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secret").finish_non_exhaustive()
    }
}

/// Never fails: the message of a failed argument quotes it.
impl std::str::FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_has_a_second_to_answer_however_short_the_limit_is() {
        let answered_after = async |time| {
            let asked = async {
                tokio::time::sleep(time).await;
                Ok(())
            };
            within(Some(Duration::from_millis(1)), asked).await.is_ok()
        };
        assert!(answered_after(CONNECT_MIN - Duration::from_millis(1)).await);
        assert!(!answered_after(CONNECT_MIN + Duration::from_millis(1)).await);
    }

    fn with_file(text: &str, own: ConnectionOptions) -> Result<ConnectionOptions, Failure> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        ConnectionOptions { config: Some(file.path().to_owned()), ..own }.with_file()
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let own = ConnectionOptions { connect: Some("flag:1".to_owned()), ..ConnectionOptions::default() };
        let text =
            "connect = \"file:1\"\nsession-timeout = \"20s\"\ntoken-generation = 3\nauth = \"shop:secret:1\"";
        let settings = with_file(text, own).unwrap();
        assert_eq!(settings.servers().unwrap(), "flag:1");
        assert_eq!(settings.session_timeout, Some(Duration::from_secs(20)));
        assert_eq!(settings.token_generation, Some(3));
        assert_eq!(settings.auth.unwrap().0, "shop:secret:1");
    }

    #[test]
    fn a_wrong_file_is_a_wrong_usage_and_its_password_is_not_shown() {
        for text in [
            "connexion = \"a\"",
            "session-timeout = \"soon\"",
            "auth = \"secret\"",
            "auth = [\"secret\"]",
            "auth = { secret = 1 }",
            "auth = 0x5ec7e7",
            "auth = shop:secret",
            "acl = \"secret",
        ] {
            let own = ConnectionOptions { connect: Some("a:1".to_owned()), ..ConnectionOptions::default() };
            let failure = with_file(text, own).and_then(|settings| settings.check()).unwrap_err();
            assert_eq!(failure.exit().code(), 64, "{text}");
            let message = failure.to_string();
            assert!(!message.contains("secret") && !message.contains("6211559"), "{failure}");
        }
        let Ok(secret) = "shop:secret".parse::<Secret>();
        let own = ConnectionOptions { auth: Some(secret), ..ConnectionOptions::default() };
        let shown = format!("{own:?}");
        assert!(!shown.contains("secret") && !shown.contains("shop"), "{shown}");
    }

    #[test]
    fn without_servers_the_message_says_how_to_name_them() {
        let failure = ConnectionOptions::default().check().unwrap_err();
        assert_eq!(failure.exit().code(), 64);
        assert!(failure.to_string().contains("LOCKKEEPER_CONNECT"));
    }
}
