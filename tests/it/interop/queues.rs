//! Work queues with the nodes of Curator's queues and of kazoo's, beside these.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_tests::{Ensemble, Peer, Timing, eventually, left_out};

use super::fixture::{Failure, Outcome, SESSION};
use super::peer_slot::{Language, PeerSlot};
use crate::support::connect;

/// Short: the test waits for it after each kill.
const SHORT_SESSION: Duration = Duration::from_secs(2);
/// The items that each side puts.
const ITEMS: usize = 30;
/// The kills of each side.
const KILLS: usize = 3;

/// A queue at a path, and a language that shares it with us.
#[derive(Clone, Copy, Debug)]
struct Shared {
    language: Language,
    kind: &'static str,
    path: &'static str,
    /// Without it, Curator's consumer takes no locks.
    has_locks: bool,
}

impl Shared {
    fn locks(self) -> String {
        format!("{}-locks", self.path)
    }

    fn queue(self, manager: &ConnectionManager) -> Result<WorkQueue<String>, Error> {
        let (path, locks) = (self.path, self.locks());
        match self.kind {
            "priority" => WorkQueue::in_curator_priority_layout(manager, path, locks),
            "delay" => WorkQueue::in_curator_delay_layout(manager, path, locks),
            "id" => WorkQueue::in_curator_id_layout(manager, path, locks),
            "kazoo" => WorkQueue::in_kazoo_layout(manager, path),
            _ => WorkQueue::in_curator_layout(manager, path, locks),
        }
    }

    fn items(self) -> String {
        if self.kind == "kazoo" { format!("{}/entries", self.path) } else { self.path.to_owned() }
    }

    /// The nodes that the items of this language became.
    fn receipts(self, language: Language) -> String {
        format!("{}-by-{language:?}", self.path)
    }

    fn offer(self, detail: &str, values: &str) -> String {
        format!("offer a {} {} {} {detail} {values}", self.path, self.kind, self.locks())
    }

    fn work_off(self, language: Language) -> String {
        let locks = if self.has_locks || language == Language::Rust { self.locks() } else { "-".to_owned() };
        format!("workoff a {} {} {locks} {}", self.path, self.kind, self.receipts(language))
    }

    /// How often each value was done by this language.
    async fn done(
        self,
        manager: &ConnectionManager,
        language: Language,
    ) -> Result<BTreeMap<String, usize>, Failure> {
        let names = manager.znodes().children(self.receipts(language)).await?.unwrap_or_default();
        let mut done = BTreeMap::new();
        for name in names {
            let (value, _) = name.rsplit_once('-').ok_or("no receipt")?;
            *done.entry(value.to_owned()).or_default() += 1;
        }
        Ok(done)
    }

    /// The names and the data of the items, in order.
    async fn nodes(self, manager: &ConnectionManager) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut names = manager.znodes().children(self.items()).await?.unwrap_or_default();
        names.retain(|name| name.starts_with("queue-") || name.starts_with("entry-"));
        names.sort_by_key(|name| name[name.len() - 10..].to_owned());
        let mut nodes = Vec::new();
        for name in names {
            if let Some((data, _)) = manager.znodes().read(format!("{}/{name}", self.items())).await? {
                nodes.push((name, data));
            }
        }
        Ok(nodes)
    }
}

/// Each side puts with the same arguments: the nodes are the same but for their numbers. Then each takes what
/// the other has put.
async fn both_ways(shared: Shared, detail: &str) -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let manager = connect(&servers).await;
    let peer = match shared.language {
        Language::Kazoo => Peer::kazoo(&servers, SESSION).await?,
        _ => Peer::java(&servers, SESSION).await?,
    };
    let ours = Peer::program(env!("CARGO_BIN_EXE_contender").as_ref(), &servers, SESSION).await?;
    let queue = shared.queue(&manager)?;
    for side in [&peer, &ours] {
        side.ask(&shared.offer(detail, "é")).await?;
    }
    let nodes = shared.nodes(&manager).await?;
    let [(theirs, their_data), (our_name, our_data)] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert_eq!(their_data, our_data);
    let prefix = |name: &str| name[..name.len() - 10].to_owned();
    assert_eq!(prefix(theirs), prefix(our_name));

    let item = queue.take().await?;
    assert_eq!((item.value().as_str(), item.path().name()), ("é", theirs.as_str()));
    // The peer goes around the item that we have.
    peer.ask(&shared.work_off(shared.language)).await?;
    let ends = async || {
        let nodes = shared.nodes(&manager).await.ok()?;
        (nodes.len() == 1).then_some(nodes)
    };
    let left = eventually("the peer takes ours", Timing::settle(), ends).await?;
    assert_eq!(left[0].0, item.path().name());
    assert_eq!(shared.done(&manager, shared.language).await?, BTreeMap::from([("é".to_owned(), 1)]));
    item.done().await?;
    assert_eq!(shared.nodes(&manager).await?, []);
    Ok(())
}

fn curator(kind: &'static str, path: &'static str) -> Shared {
    Shared { language: Language::Java, kind, path, has_locks: true }
}

#[tokio::test]
async fn java_and_rust_share_the_items_of_a_queue() -> Outcome {
    both_ways(curator("plain", "/interop/queue-plain"), "0").await
}

#[tokio::test]
async fn java_and_rust_share_the_items_of_a_priority_queue() -> Outcome {
    both_ways(curator("priority", "/interop/queue-priority"), "7").await
}

#[tokio::test]
async fn java_and_rust_share_the_items_of_a_delay_queue() -> Outcome {
    both_ways(curator("delay", "/interop/queue-delay"), "1700000000000").await
}

#[tokio::test]
async fn java_and_rust_share_the_items_of_an_id_queue() -> Outcome {
    both_ways(curator("id", "/interop/queue-id"), "a|b").await
}

#[tokio::test]
async fn kazoo_and_rust_share_the_items_of_a_locking_queue() -> Outcome {
    let (language, kind, path) = (Language::Kazoo, "kazoo", "/interop/queue-kazoo");
    both_ways(Shared { language, kind, path, has_locks: true }, "7").await
}

#[tokio::test]
async fn several_items_that_java_puts_into_one_node_are_taken_one_by_one() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let (java, manager) = (Peer::java(&servers, SESSION).await?, connect(&servers).await);
    let shared = curator("priority", "/interop/queue-multi");
    java.ask(&shared.offer("-5", "a,b,c")).await?;
    assert_eq!(shared.nodes(&manager).await?.len(), 1);
    let queue = shared.queue(&manager)?;
    for value in ["a", "b", "c"] {
        let item = queue.take().await?;
        assert_eq!(item.value(), value);
        item.done().await?;
    }
    assert!(queue.try_take().await?.is_none());
    Ok(())
}

/// Both sides put and take while their processes are killed.
async fn under_kills(shared: Shared) -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let manager = connect(&servers).await;
    let mut slots = Vec::new();
    for language in [shared.language, Language::Rust] {
        slots.push(PeerSlot::start(language, &servers, SHORT_SESSION, KILLS).await?);
    }
    for number in 0..ITEMS {
        for (slot, side) in slots.iter().zip(["peer", "ours"]) {
            slot.peer().0.ask(&shared.offer("7", &format!("{side}{number}"))).await?;
        }
    }
    for slot in &slots {
        slot.peer().0.ask(&shared.work_off(slot.language())).await?;
    }
    for kill in 0..2 * KILLS {
        let language = slots[kill % 2].language();
        let done = async || Ok::<usize, Failure>(shared.done(&manager, language).await?.values().sum());
        let before = done().await?;
        let some_are_done = async || {
            let is_empty = shared.nodes(&manager).await.is_ok_and(|nodes| nodes.is_empty());
            (is_empty || done().await.is_ok_and(|done| done > before)).then_some(())
        };
        eventually("some items are done", Timing::settle(), some_are_done).await?;
        let slot = &slots[kill % 2];
        slot.die().await?;
        slot.peer().0.ask(&shared.work_off(slot.language())).await?;
    }
    let is_empty = async || shared.nodes(&manager).await.is_ok_and(|nodes| nodes.is_empty()).then_some(());
    eventually("all items are done", Timing::settle(), is_empty).await?;
    judge(shared, &manager).await
}

/// Ours ends no item twice, and loses none: what a peer did beside that is counted.
async fn judge(shared: Shared, manager: &ConnectionManager) -> Outcome {
    // A consumer without a lock path deletes the item that it works on: those of killed ones are lost, and
    // the present one is about to write a receipt.
    let lost_max = if shared.has_locks { 0 } else { KILLS };
    let receipts = async || {
        let theirs = shared.done(manager, shared.language).await.ok()?;
        let ours = shared.done(manager, Language::Rust).await.ok()?;
        let count = theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>().len();
        (count + lost_max >= 2 * ITEMS).then_some((theirs, ours))
    };
    let (theirs, ours) = eventually("the last receipts", Timing::settle(), receipts).await?;
    assert!(ours.values().all(|count| *count == 1), "ours ended an item twice: {ours:?}");
    let values = (0..ITEMS).flat_map(|number| [format!("peer{number}"), format!("ours{number}")]);
    let (mut lost, mut doubled) = (0, 0);
    for value in values {
        match theirs.get(&value).unwrap_or(&0) + ours.get(&value).unwrap_or(&0) {
            0 => lost += 1,
            1 => {}
            _ => doubled += 1,
        }
    }
    println!(
        "{shared:?}: by the peer {}, by ours {}, lost {lost}, doubled {doubled}",
        theirs.len(),
        ours.len()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn java_and_rust_do_every_item_of_a_queue_while_both_are_killed() -> Outcome {
    under_kills(curator("plain", "/interop/queue-plain-kills")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_loses_no_item_beside_java_without_locks_while_both_are_killed() -> Outcome {
    under_kills(Shared { has_locks: false, ..curator("plain", "/interop/queue-bare-kills") }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn java_and_rust_do_every_item_of_a_priority_queue_while_both_are_killed() -> Outcome {
    under_kills(curator("priority", "/interop/queue-priority-kills")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kazoo_and_rust_do_every_item_of_a_locking_queue_while_both_are_killed() -> Outcome {
    let (language, kind, path) = (Language::Kazoo, "kazoo", "/interop/queue-kazoo-kills");
    under_kills(Shared { language, kind, path, has_locks: true }).await
}
