use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use zookeeper_client as client;

use super::security::{with_sasl, with_tls};
use super::session::ZooKeeperSession;
use super::{convert, look};
use crate::config::acl::{Acl, Credentials};
use crate::config::connect_string::{ConnectString, Endpoint};
use crate::config::tls::{Sasl, Tls};
use crate::error::ConfigError;
use crate::time::fractions;
use crate::wire::{Backend, Reply, ServerFault, Wire, WireError};

/// Opens sessions with the client crate.
pub(crate) struct ZooKeeper {
    connector: client::Connector,
    servers: String,
    endpoints: Arc<[Endpoint]>,
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
        let connector = with_tls(connector, servers, tls)?;
        let connector = with_sasl(connector, sasl)?;
        let acl = convert::client_acls(acl);
        Ok(Self {
            connector,
            servers: endpoint_list(servers.endpoints()),
            endpoints: servers.endpoints().into(),
            acl,
            has_nodelay: true,
        })
    }

    pub(crate) fn with_nodelay(self, has_nodelay: bool) -> Self {
        Self { has_nodelay, ..self }
    }
}

impl Debug for ZooKeeper {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ZooKeeper").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Backend for ZooKeeper {
    fn open(&self) -> Reply<Arc<dyn Wire>> {
        let connector = self.connector.clone();
        let servers = self.servers.clone();
        let (endpoints, acl) = (Arc::clone(&self.endpoints), Arc::clone(&self.acl));
        let has_nodelay = self.has_nodelay;
        Box::pin(async move {
            let client = connector.connect(&servers).await.map_err(|error| match error {
                client::Error::AuthFailed => WireError::AuthFailed,
                // The client does not report the cause.
                client::Error::Timeout => WireError::Timeout,
                other => WireError::Broken(other.to_string()),
            })?;
            let wire: Arc<dyn Wire> = Arc::new(ZooKeeperSession::new(client, endpoints, acl, has_nodelay));
            Ok(wire)
        })
    }

    fn no_answer_hint(&self) -> &'static str {
        if self.endpoints.iter().any(Endpoint::is_secure) {
            "no answer over TLS; is ZooKeeper running there, with TLS, do the authorities given vouch for \
             the certificate it shows and for this name, and does it ask for a certificate of ours?"
        } else {
            "no answer; is ZooKeeper running there?"
        }
    }

    fn look_at_servers(&self) -> Option<BoxFuture<'static, Vec<ServerFault>>> {
        let looks = join_all(self.endpoints.iter().cloned().map(look::look_at));
        Some(looks.map(|faults| faults.into_iter().flatten().collect()).boxed())
    }
}

/// The list of endpoints for the client: each server once, or a single server many times.
///
/// The client shuffles the list, so two entries of one server may follow each other. If that server accepts
/// connections and does not answer, each entry costs a whole connection attempt, a fifth of the session
/// timeout. A single server has no other one to wait for, and its entries shorten the pauses: the client
/// tries the whole list at once, then pauses longer and longer between rounds. If the server is listed once
/// and is back after seven seconds, the client tries it again after thirteen seconds. A session of ten
/// seconds has expired then.
fn endpoint_list(endpoints: &[Endpoint]) -> String {
    let mut servers: Vec<String> = Vec::new();
    for server in endpoints.iter().map(ToString::to_string) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let times = if servers.len() == 1 { SINGLE_SERVER_ENTRIES } else { 1 };
    vec![servers.join(","); times].join(",")
}

/// How often a single server is in the list for the client.
const SINGLE_SERVER_ENTRIES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(servers: &str) -> Vec<String> {
        let servers: ConnectString = servers.parse().unwrap();
        endpoint_list(servers.endpoints()).split(',').map(str::to_owned).collect()
    }

    #[test]
    fn each_of_several_servers_is_in_the_list_once_and_a_single_one_many_times() {
        assert_eq!(list("a,b:1"), ["tcp://a:2181", "tcp://b:1"]);
        assert_eq!(list("a,b,a,c:3,b:2181"), ["tcp://a:2181", "tcp://b:2181", "tcp://c:3"]);
        for single in ["a:1", "a:1,a:1"] {
            assert_eq!(list(single), vec!["tcp://a:1"; SINGLE_SERVER_ENTRIES]);
        }
    }
}
