//! After the faults: every client is granted its locks, then all are released, then no node is left.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_tests::{Ensemble, HarnessError, RawClient, eventually, eventually_with_pause};
use parking_lot::Mutex;

use super::Client;
use crate::Failure;
use crate::fixture::{self, SOAK_LOCKS};
use crate::history::Token;

/// Between two looks at all nodes: each is some hundred requests.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// The clients, and their locks, without a grant since `since`, when there are none or `limit` has passed.
pub(super) async fn unserved(clients: &[Client], since: u64, limit: Duration) -> Vec<(String, String)> {
    let missing = Mutex::new(Vec::new());
    let served = eventually("every client is granted its locks", limit, async || {
        let now: Vec<(String, String)> = clients.iter().flat_map(|client| lacks(client, since)).collect();
        let done = now.is_empty();
        *missing.lock() = now;
        done.then_some(())
    });
    // How it ended is in `missing`.
    let _ = served.await;
    missing.into_inner()
}

fn lacks(client: &Client, since: u64) -> Vec<(String, String)> {
    let seen = client.progress();
    let taken = SOAK_LOCKS.iter().filter(|soak_lock| fixture::work().any(|work| work.takes(soak_lock)));
    taken
        .map(|soak_lock| soak_lock.name)
        .chain(fixture::BESIDE)
        .filter(|name| seen.grants.get(*name).is_none_or(|at| *at <= since))
        .map(|name| (client.name.clone(), name.to_owned()))
        .collect()
}

/// Every client releases everything, and keeps its session. Returns the clients that do not.
pub(super) async fn become_quiet(clients: &[Client], limit: Duration) -> Result<Vec<String>, Failure> {
    try_join_all(clients.iter().map(|client| client.command("quiet"))).await?;
    let loud = Mutex::new(Vec::new());
    let quiet = eventually("every client is quiet", limit, async || {
        let now: Vec<String> = clients
            .iter()
            .filter(|client| !client.progress().quiet)
            .map(|client| format!("{} did not give everything back", client.name))
            .collect();
        let done = now.is_empty();
        *loud.lock() = now;
        done.then_some(())
    });
    let _ = quiet.await;
    Ok(loud.into_inner())
}

/// The nodes below the locks, when there are none or `limit` has passed. The clients' sessions are alive, so
/// the clients must have deleted their nodes.
pub(super) async fn orphans(ensemble: &Ensemble, limit: Duration) -> Result<Vec<String>, Failure> {
    let left = Mutex::new(Vec::new());
    let gone =
        eventually_with_pause("no node is left", limit, PAUSE, async || match remaining(ensemble).await {
            Ok(now) => {
                let done = now.is_empty();
                *left.lock() = now;
                done.then_some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        });
    match gone.await {
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(())) | Err(_) => Ok(left.into_inner()),
    }
}

async fn remaining(ensemble: &Ensemble) -> Result<Vec<String>, HarnessError> {
    nodes_at(ensemble.leader().await?.address()).await
}

/// The nodes that one server had at every check and another had not, when there are none or `limit` has
/// passed. They never differ for long unless one of them has broken its word, and with it everything that the
/// locks rest on.
///
/// This also works while locks are acquired: each time, other nodes are on their way to a server.
pub(super) async fn disagreements(ensemble: &Ensemble, limit: Duration) -> Result<Vec<String>, Failure> {
    let differ = Mutex::new(None::<BTreeSet<String>>);
    let agreed = eventually_with_pause("the servers agree", limit, PAUSE, async || {
        match nodes_of_all(ensemble).await {
            Ok(servers) => {
                let mut differ = differ.lock();
                let now = still_differing(differ.take(), differing(&servers));
                let done = now.is_empty();
                *differ = Some(now);
                done.then_some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        }
    });
    match agreed.await {
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(())) | Err(_) => Ok(differ.into_inner().unwrap_or_default().into_iter().collect()),
    }
}

/// The contenders' nodes, the items of the work queue and their effects, by the index of the server.
async fn nodes_of_all(ensemble: &Ensemble) -> Result<BTreeMap<usize, BTreeSet<String>>, HarnessError> {
    let mut servers = BTreeMap::new();
    for server in ensemble.servers() {
        let mut nodes: BTreeSet<String> = nodes_at(server.address()).await?.into_iter().collect();
        let mut raw = RawClient::connect(server.address()).await?;
        raw.sync("/").await?;
        for folder in [fixture::EFFECTS.to_owned(), format!("{}/items", fixture::JOBS)] {
            let names = children(&mut raw, &folder).await?;
            nodes.extend(names.iter().map(|name| format!("{folder}/{name}")));
        }
        raw.close().await?;
        servers.insert(server.index(), nodes);
    }
    Ok(servers)
}

/// The nodes that one server has and another has not, and the servers of either kind.
fn differing(servers: &BTreeMap<usize, BTreeSet<String>>) -> BTreeSet<String> {
    let all: BTreeSet<&String> = servers.values().flatten().collect();
    let difference = |node: &String| {
        let (with, without): (Vec<_>, Vec<_>) = servers.iter().partition(|(_, nodes)| nodes.contains(node));
        let names = |servers: Vec<(&usize, _)>| {
            servers.iter().map(|(index, _)| format!("s{index}")).collect::<Vec<_>>().join(", ")
        };
        (!without.is_empty()).then(|| format!("{node} is on {} and not on {}", names(with), names(without)))
    };
    all.into_iter().filter_map(difference).collect()
}

/// What differs now, and differed in the same way at every check before.
fn still_differing(before: Option<BTreeSet<String>>, now: BTreeSet<String>) -> BTreeSet<String> {
    match before {
        Some(before) => now.intersection(&before).cloned().collect(),
        None => now,
    }
}

/// The contenders' nodes, as this server has them.
async fn nodes_at(server: SocketAddr) -> Result<Vec<String>, HarnessError> {
    let mut raw = RawClient::connect(server).await?;
    raw.sync("/").await?;
    let mut found = Vec::new();
    // The workers of the queue are deleted with their process, or when no call has needed them for a while.
    let mut folders = vec![fixture::LOCKS.to_owned(), format!("{}/workers", fixture::JOBS)];
    while let Some(folder) = folders.pop() {
        for name in children(&mut raw, &folder).await? {
            let path = format!("{folder}/{name}");
            match raw.exists(&path).await? {
                Some(stat) if stat.ephemeral_owner != 0 || name.starts_with("_c_") => found.push(path),
                Some(_) => folders.push(path),
                None => {}
            }
        }
    }
    raw.close().await?;
    Ok(found)
}

async fn children(raw: &mut RawClient, path: &str) -> Result<Vec<String>, HarnessError> {
    match raw.children(path).await {
        // An empty container, which the server has removed.
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        children => children,
    }
}

/// The counter of all clients.
pub(super) async fn number(ensemble: &Ensemble) -> Result<i64, Failure> {
    let mut raw = ensemble.raw().await?;
    raw.sync("/").await?;
    let number = match raw.data(fixture::NUMBER).await {
        Ok((data, _)) => i64::from_be_bytes(data.as_slice().try_into()?),
        // Nobody has added.
        Err(error) if error.is_no_node() => 0,
        Err(error) => return Err(error.into()),
    };
    raw.close().await?;
    Ok(number)
}

/// Token and version of each register.
pub(super) async fn registers(ensemble: &Ensemble) -> Result<BTreeMap<String, (Token, i32)>, Failure> {
    let mut raw = ensemble.raw().await?;
    raw.sync("/").await?;
    let mut registers = BTreeMap::new();
    for soak_lock in SOAK_LOCKS {
        let (data, stat) = raw.data(&fixture::register_of(soak_lock)).await?;
        registers.insert(soak_lock.name.to_owned(), (String::from_utf8(data)?.parse()?, stat.version));
    }
    raw.close().await?;
    Ok(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(nodes: [&[&str]; 3]) -> BTreeMap<usize, BTreeSet<String>> {
        let of = |nodes: &[&str]| nodes.iter().map(|node| (*node).to_owned()).collect();
        nodes.into_iter().map(of).enumerate().collect()
    }

    #[test]
    fn a_node_that_is_not_on_all_servers_is_named_with_the_servers() {
        assert!(differing(&servers([&["/a", "/b"]; 3])).is_empty());
        assert!(differing(&servers([&[]; 3])).is_empty());
        let found = differing(&servers([&["/a", "/b"], &["/a"], &["/a", "/c"]]));
        let reported = ["/b is on s0 and not on s1, s2", "/c is on s2 and not on s0, s1"];
        assert_eq!(found, BTreeSet::from(reported.map(str::to_owned)));
    }

    #[test]
    fn only_a_difference_that_is_the_same_at_every_check_is_reported() {
        let checks: [[&[&str]; 3]; 3] =
            [[&["/a", "/b"], &["/a"], &["/a"]], [&["/b", "/c"], &["/c"], &[]], [&["/b"], &[], &["/b"]]];
        let mut differ = None;
        let mut left = Vec::new();
        for check in checks {
            let now = still_differing(differ, differing(&servers(check)));
            left.push(now.len());
            differ = Some(now);
        }
        assert_eq!(left, [1, 1, 0], "a node on its way to a server counts");
    }
}
