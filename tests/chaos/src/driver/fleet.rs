//! After the faults: each item is with its member, and each living process is registered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockkeeper::Partition;
use lockkeeper::discovery::{Instance, NoPayload};
use lockkeeper_tests::{Ensemble, HarnessError, RawClient, eventually_with_pause};
use parking_lot::Mutex;

use super::Client;
use super::finale::PAUSE;
use crate::Failure;
use crate::fixture::{self, GROUP, INSTANCE, MEMBER, SERVICE, SERVICES, SINGLE};
use crate::history::Node;

/// Waits until everything is where it belongs, or `limit` has passed: the histories show which. Returns the
/// nodes of the registrations.
pub(super) async fn settled(
    ensemble: &Ensemble,
    clients: &[Client],
    limit: Duration,
) -> Result<Vec<Node>, Failure> {
    let nodes = Mutex::new(Vec::new());
    let settled = eventually_with_pause("items and registrations settle", limit, PAUSE, async || {
        let now = match registered(ensemble).await {
            Ok(now) => now,
            Err(error) => return Some(Err(error)),
        };
        let done = is_settled(clients, &now);
        *nodes.lock() = now;
        done.then_some(Ok(()))
    });
    match settled.await {
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(())) | Err(_) => Ok(nodes.into_inner()),
    }
}

fn is_settled(clients: &[Client], nodes: &[Node]) -> bool {
    let processes: BTreeMap<String, String> =
        clients.iter().map(|client| (client.name.clone(), client.process())).collect();
    let ids = || processes.keys().map(String::as_str);
    let below = |prefix: &str| -> BTreeMap<String, String> {
        let below = nodes
            .iter()
            .filter_map(|node| Some((node.name.strip_prefix(prefix)?.to_owned(), node.data.clone())));
        below.collect()
    };
    let (members, instances) = (below(MEMBER), below(INSTANCE));
    let has_one = nodes.iter().any(|node| {
        node.name == fixture::name_of(SINGLE) && processes.values().any(|process| *process == node.data)
    });
    let is_served = |client: &Client| {
        let seen = client.progress();
        let items: Vec<String> = fixture::items().collect();
        let owner = |item: &&String| Partition::owner_among(item, ids()) == Some(client.name.as_str());
        let expected: BTreeSet<&str> = items.iter().filter(owner).map(String::as_str).collect();
        seen.items() == expected && seen.members == members && seen.instances == instances
    };
    members == processes && instances == processes && has_one && clients.iter().all(is_served)
}

async fn registered(ensemble: &Ensemble) -> Result<Vec<Node>, HarnessError> {
    let mut raw = ensemble.raw().await?;
    raw.sync("/").await?;
    let mut paths = vec![SINGLE.to_owned()];
    for parent in [GROUP.to_owned(), format!("{SERVICES}/{SERVICE}")] {
        match raw.children(&parent).await {
            Ok(ids) => paths.extend(ids.iter().map(|id| format!("{parent}/{id}"))),
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
    }
    let mut nodes = Vec::new();
    for path in &paths {
        nodes.extend(node(&mut raw, path).await?);
    }
    raw.close().await?;
    Ok(nodes)
}

async fn node(raw: &mut RawClient, path: &str) -> Result<Option<Node>, HarnessError> {
    match raw.data(path).await {
        Ok((data, stat)) => {
            let name = fixture::name_of(path).to_owned();
            let instance = Instance::<NoPayload>::from_json(&data).ok();
            let data = match name.starts_with(INSTANCE) {
                true => instance.and_then(|instance| Some(instance.address()?.to_owned())),
                false => Some(String::from_utf8_lossy(&data).into_owned()),
            };
            Ok(Some(Node { name, czxid: stat.czxid, data: data.unwrap_or_default() }))
        }
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    }
}
