use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use zookeeper_client as client;

use super::attached::Attached;
use super::open_sessions::OpenSessions;
use super::security::{with_sasl, with_tls};
use super::servers::Servers;
use super::session::ZooKeeperSession;
use super::{convert, look};
use crate::config::acl::{Acl, Credentials};
use crate::config::connect_string::{ConnectString, Endpoint};
use crate::config::tls::{Sasl, Tls, check_tls};
use crate::error::ConfigError;
use crate::time::fractions;
use crate::wire::{Backend, Reply, ServerFault, Wire, WireError};

/// Opens sessions with the client crate.
pub(crate) struct ZooKeeper {
    /// Without TLS.
    connector: client::Connector,
    tls: Option<Tls>,
    sessions: Arc<OpenSessions>,
    acl: Arc<[client::Acl]>,
    has_nodelay: bool,
}

impl ZooKeeper {
    pub(crate) fn new(
        servers: &ConnectString,
        session_timeout: Duration,
        credentials: &[Credentials],
        acl: &Acl,
        tls: Option<&Tls>,
        sasl: Option<&Sasl>,
    ) -> Result<Self, ConfigError> {
        let hang = fractions::connect_attempt(session_timeout);
        let connector =
            client::Client::connector().with_session_timeout(session_timeout).with_connection_timeout(hang);
        let connector = credentials.iter().fold(connector, |connector, credentials| {
            connector.with_auth(&credentials.scheme, &credentials.secret)
        });
        let connector = with_sasl(connector, sasl)?;
        let acl = convert::client_acls(acl);
        let secured = with_tls(connector.clone(), servers, tls)?;
        let sessions = Arc::new(OpenSessions::new(Servers::new(servers, secured)));
        Ok(Self { connector, tls: tls.cloned(), sessions, acl, has_nodelay: true })
    }

    pub(crate) fn with_nodelay(self, has_nodelay: bool) -> Self {
        Self { has_nodelay, ..self }
    }
}

impl Debug for ZooKeeper {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ZooKeeper").field("servers", &self.sessions.servers()).finish_non_exhaustive()
    }
}

impl Backend for ZooKeeper {
    fn open(&self) -> Reply<Arc<dyn Wire>> {
        let (sessions, acl) = (Arc::clone(&self.sessions), Arc::clone(&self.acl));
        let has_nodelay = self.has_nodelay;
        Box::pin(async move {
            let mut latest = sessions.subscribe();
            loop {
                let servers = Arc::clone(&latest.borrow_and_update());
                let connected = tokio::select! {
                    biased;
                    // This borrow keeps the sender alive.
                    _ = latest.changed() => continue,
                    connected = Attached::connect(&servers, None) => connected,
                };
                let attached = connected.map_err(|error| match error {
                    client::Error::AuthFailed => WireError::AuthFailed,
                    // The client does not report the cause.
                    client::Error::Timeout => WireError::Timeout,
                    other => WireError::Broken(other.to_string()),
                })?;
                let session = ZooKeeperSession::new(attached, Arc::clone(&servers), acl, has_nodelay);
                let session = Arc::new(session);
                sessions.add(&session, &servers);
                return Ok(session as Arc<dyn Wire>);
            }
        })
    }

    fn set_servers(&self, servers: &ConnectString) -> Result<(), ConfigError> {
        check_tls(servers, self.tls.as_ref())?;
        let connector = with_tls(self.connector.clone(), servers, self.tls.as_ref())?;
        self.sessions.replace(Servers::new(servers, connector));
        Ok(())
    }

    fn no_answer_hint(&self) -> &'static str {
        if self.sessions.servers().endpoints().iter().any(Endpoint::is_secure) {
            "no answer over TLS; is ZooKeeper running there, with TLS, do the authorities given vouch for \
             the certificate it shows and for this name, and does it ask for a certificate of ours?"
        } else {
            "no answer; is ZooKeeper running there?"
        }
    }

    fn look_at_servers(&self) -> Option<BoxFuture<'static, Vec<ServerFault>>> {
        let looks = join_all(self.sessions.servers().endpoints().iter().cloned().map(look::look_at));
        Some(looks.map(|faults| faults.into_iter().flatten().collect()).boxed())
    }
}

#[cfg(feature = "tls")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_tls_beside_tls_settings_is_refused_and_changes_nothing() {
        let at = |servers: &str| servers.parse::<ConnectString>().unwrap();
        let timeout = Duration::from_secs(10);
        let backend =
            ZooKeeper::new(&at("a:1"), timeout, &[], &Acl::open(), Some(&Tls::new()), None).unwrap();
        let error = backend.set_servers(&at("b:1,tcp+tls://c:1")).unwrap_err();
        assert!(matches!(&error, ConfigError::Setting { name: "tls", .. }), "{error}");
        assert!(error.to_string().contains("tcp://b:1"), "{error}");
        assert!(backend.sessions.servers().list().starts_with("tcp://a:1"));
    }
}
