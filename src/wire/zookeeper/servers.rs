use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};

use zookeeper_client as client;

use crate::config::connect_string::{ConnectString, Endpoint};

/// The servers of a manager, and how the client reaches them.
pub(super) struct Servers {
    endpoints: Vec<Endpoint>,
    /// As the client takes them.
    list: String,
    connector: client::Connector,
}

impl Servers {
    pub(super) fn new(servers: &ConnectString, connector: client::Connector) -> Self {
        let endpoints = servers.endpoints().to_vec();
        Self { list: endpoint_list(&endpoints), endpoints, connector }
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    pub(super) fn list(&self) -> &str {
        &self.list
    }

    pub(super) fn connector(&self) -> client::Connector {
        self.connector.clone()
    }

    /// Whether both are the same servers, in whatever order.
    pub(super) fn are_those_of(&self, other: &Self) -> bool {
        let set = |servers: &Self| servers.endpoints.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        set(self) == set(other)
    }
}

impl Debug for Servers {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.endpoints.iter().map(ToString::to_string)).finish()
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

    fn servers(text: &str) -> Servers {
        Servers::new(&text.parse().unwrap(), client::Client::connector())
    }

    #[test]
    fn each_of_several_servers_is_in_the_list_once_and_a_single_one_many_times() {
        let list = |text: &str| servers(text).list().split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(list("a,b:1"), ["tcp://a:2181", "tcp://b:1"]);
        assert_eq!(list("a,b,a,c:3,b:2181"), ["tcp://a:2181", "tcp://b:2181", "tcp://c:3"]);
        for single in ["a:1", "a:1,a:1"] {
            assert_eq!(list(single), vec!["tcp://a:1"; SINGLE_SERVER_ENTRIES]);
        }
    }

    #[test]
    fn the_order_of_servers_makes_no_other_list() {
        assert!(servers("a,b:1").are_those_of(&servers("b:1,a:2181,a")));
        assert!(!servers("a,b").are_those_of(&servers("a")));
        assert!(!servers("a").are_those_of(&servers("a:1")));
    }
}
