//! The task of a member: sends the engine's requests, and publishes its state.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use lockkeeper_core::{
    Error, Hold, HoldExt, LockQueue, NodeMonitor, PresenceState, Snapshot, ViewState, Watch, count_of,
};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

use super::contend::contend;
use super::decide::{Item, Listen, ShareEngine, ShareEvent, ShareStep, Shared};
use super::handle::{ItemsView, Partition};
use super::hash::Hashed;
use super::item::{AssignedItem, ItemLink, ReleaseReason};
use super::offers::Offers;
use super::share::PartitionShare;
use crate::group::{MembersView, Membership};

/// Tells the caller that all items are given up, and how the member left the group.
pub(super) type Left = oneshot::Sender<Result<(), Error>>;

/// The end of something that the task waited for.
enum WorkOutcome {
    Granted(Item, Box<Hold>),
    Failed(Item, Error),
    Wanted(Item),
    /// The hold of the item is lost.
    Lost(Item),
    Refreshed,
    Left(Result<(), Error>),
}

/// An item whose guard the application has.
struct HeldItem {
    monitor: Arc<NodeMonitor>,
    request: watch::Sender<Option<ReleaseReason>>,
}

pub(super) struct MemberTask {
    partition: Partition,
    id: Arc<str>,
    membership: Option<Membership>,
    members: MembersView,
    items: ItemsView,
    engine: ShareEngine,
    work: FuturesUnordered<Abortable<BoxFuture<'static, WorkOutcome>>>,
    /// What is awaited for an item: its grant, or a request and the loss of the hold.
    running: HashMap<Item, AbortHandle>,
    /// Granted, and not offered yet.
    granted: HashMap<Item, Box<Hold>>,
    held: HashMap<Item, HeldItem>,
    is_refreshing: bool,
    /// A request came since the look began: its member may know more.
    refreshes_again: bool,
    offers: Offers,
    ended: (mpsc::UnboundedSender<Item>, mpsc::UnboundedReceiver<Item>),
    leaves: mpsc::UnboundedReceiver<Left>,
    leaving: Option<Left>,
    left: Option<Result<(), Error>>,
    share: watch::Sender<PartitionShare>,
}

/// What the handle of a member gets from its task.
pub(super) struct Channels {
    pub(super) offers: Offers,
    pub(super) leaves: mpsc::UnboundedReceiver<Left>,
    pub(super) share: watch::Sender<PartitionShare>,
}

impl MemberTask {
    pub(super) fn new(
        partition: Partition,
        membership: Membership,
        members: MembersView,
        items: ItemsView,
        channels: Channels,
    ) -> Self {
        let id: Arc<str> = membership.id().into();
        Self {
            partition,
            engine: ShareEngine::new(Arc::clone(&id)),
            id,
            membership: Some(membership),
            members,
            items,
            work: FuturesUnordered::new(),
            running: HashMap::new(),
            granted: HashMap::new(),
            held: HashMap::new(),
            is_refreshing: false,
            refreshes_again: false,
            offers: channels.offers,
            ended: mpsc::unbounded_channel(),
            leaves: channels.leaves,
            leaving: None,
            left: None,
            share: channels.share,
        }
    }

    /// Runs until the handle is dropped, the member has left, or the manager is shut down.
    pub(super) async fn run(mut self, mut presence: Watch<PresenceState>) {
        let manager = self.partition.manager().clone();
        let mut closing = std::pin::pin!(manager.closing());
        let (mut members, mut items) = (self.members.changes(), self.items.changes());
        loop {
            let event = tokio::select! {
                biased;
                () = &mut closing => break,
                leave = self.leaves.recv(), if self.leaving.is_none() => match leave {
                    Some(left) => self.leave(left),
                    None => break,
                },
                () = cancelled(&mut self.leaving) => break,
                Some(item) = self.ended.1.recv() => {
                    self.forget(&item);
                    Some(ShareEvent::Ended(item))
                }
                Some(outcome) = self.work.next() => outcome.ok().and_then(|outcome| self.take(outcome)),
                change = members.next() => match change {
                    Some(_) => self.look(presence.state()),
                    None => break,
                },
                change = items.next() => match change {
                    Some(_) => self.look(presence.state()),
                    None => break,
                },
                state = presence.changed(), if self.membership.is_some() => match state {
                    Ok(state) => self.look(state),
                    Err(_) => break,
                },
            };
            event.into_iter().for_each(|event| self.handle(event));
            if self.engine.is_idle() {
                if let Some(left) = self.left.take() {
                    let _ = self.leaving.take().map(|leaving| leaving.send(left));
                    return;
                }
            }
        }
        self.handle(ShareEvent::Hurry);
    }

    /// The members leave the group first: the others then queue for the items, and ask for them.
    fn leave(&mut self, left: Left) -> Option<ShareEvent> {
        self.leaving = Some(left);
        let membership = self.membership.take()?;
        self.spawn(async move { WorkOutcome::Left(membership.leave().await) }.boxed());
        Some(ShareEvent::Leave)
    }

    fn take(&mut self, outcome: WorkOutcome) -> Option<ShareEvent> {
        match outcome {
            WorkOutcome::Granted(item, hold) => {
                self.running.remove(&item);
                self.granted.insert(Arc::clone(&item), hold);
                Some(ShareEvent::Granted(item))
            }
            WorkOutcome::Failed(item, error) => {
                warn!(path = %self.partition.whole_path(), %item, %error, "an item is not acquired");
                self.share.send_modify(|share| share.error = Some(error));
                self.contend(item, true);
                None
            }
            WorkOutcome::Wanted(item) => {
                self.running.remove(&item);
                Some(ShareEvent::Wanted(item))
            }
            WorkOutcome::Lost(item) => {
                self.running.remove(&item);
                // If the application has not taken the guard, nobody else would drop it and contend again.
                self.offers.withdraw(&item);
                None
            }
            WorkOutcome::Refreshed => {
                self.is_refreshing = false;
                if std::mem::take(&mut self.refreshes_again) {
                    self.step(ShareStep::Refresh);
                }
                let state = self.membership.as_ref().map(Membership::state);
                state.and_then(|state| self.look(state))
            }
            WorkOutcome::Left(result) => {
                self.left = Some(result);
                None
            }
        }
    }

    /// What the members share now, if that is another than before.
    fn look(&self, state: PresenceState) -> Option<ShareEvent> {
        let (members, items) = (self.members.snapshot(), self.items.snapshot());
        if !(is_known(members.state()) && is_known(items.state())) {
            return None;
        }
        let is_member = match state {
            PresenceState::Registered { czxid } => {
                members.get(&self.id).is_some_and(|node| node.stat().czxid == czxid)
            }
            _ => false,
        };
        let shared = Shared { members: names(&members), items: names(&items), is_member };
        (shared != *self.engine.shared()).then_some(ShareEvent::Shared(shared))
    }

    fn handle(&mut self, event: ShareEvent) {
        let is_shared = matches!(event, ShareEvent::Shared(_));
        let has_share = matches!(event, ShareEvent::Shared(_) | ShareEvent::Leave | ShareEvent::Hurry);
        for step in self.engine.handle(event) {
            self.step(step);
        }
        if is_shared {
            let shared = self.engine.shared();
            info!(
                path = %self.partition.whole_path(),
                id = %self.id,
                members = shared.members.len(),
                items = shared.items.len(),
                mine = self.engine.mine().len(),
                "the share of a member"
            );
        }
        if has_share {
            self.publish();
        }
    }

    fn step(&mut self, step: ShareStep) {
        debug!(path = %self.partition.whole_path(), id = %self.id, ?step, "the next step of a member");
        match step {
            ShareStep::Contend(item) => self.contend(item, false),
            ShareStep::Withdraw(item) => self.stop(&item),
            ShareStep::Offer(item) => self.offer(item),
            ShareStep::Return(item) => drop(self.granted.remove(&item)),
            ShareStep::Listen(item, listen) => self.listen(item, listen),
            ShareStep::Request(item, reason) => {
                self.stop(&item);
                if let Some(held) = self.held.get(&item) {
                    held.request.send_replace(Some(reason));
                }
                // Nobody works on it, so nobody else would give it up.
                self.offers.withdraw(&item);
            }
            ShareStep::Refresh if self.is_refreshing => self.refreshes_again = true,
            ShareStep::Refresh => {
                self.is_refreshing = true;
                let (members, items) = (self.members.clone(), self.items.clone());
                let refresh = async move {
                    let _ = tokio::join!(members.sync(), items.sync());
                    WorkOutcome::Refreshed
                };
                self.spawn(refresh.boxed());
            }
        }
    }

    fn contend(&mut self, item: Item, is_retry: bool) {
        let queue = match self.partition.queue(&item, &self.id) {
            Ok(queue) => queue,
            // A name that is too long for a path: no member can acquire the item.
            Err(error) => return self.share.send_modify(|share| share.error = Some(error)),
        };
        let name = Arc::clone(&item);
        let acquire = async move {
            if is_retry {
                tokio::time::sleep(queue.manager().session_timeout()).await;
            }
            match acquire(&queue).await {
                Ok(hold) => WorkOutcome::Granted(name, hold),
                Err(error) => WorkOutcome::Failed(name, error),
            }
        };
        self.start(item, acquire.boxed());
    }

    fn offer(&mut self, item: Item) {
        let Some(hold) = self.granted.remove(&item) else { return };
        let (request, requested) = watch::channel(None);
        let token = hold.fencing_token();
        self.held.insert(Arc::clone(&item), HeldItem { monitor: Arc::new(hold.monitor()), request });
        self.share.send_modify(|share| {
            share.held.insert(Arc::clone(&item), token);
            share.error = None;
        });
        let link = ItemLink { item, requested, ended: self.ended.0.clone() };
        self.offers.offer(AssignedItem::new(*hold, link));
    }

    fn listen(&mut self, item: Item, listen: Listen) {
        self.stop(&item);
        let Some(held) = self.held.get(&item) else { return };
        let (monitor, name) = (Arc::clone(&held.monitor), Arc::clone(&item));
        let wanted = async move {
            let wanted = async {
                match listen {
                    Listen::Contender => monitor.contended(|_| {}).await,
                    Listen::Request => monitor.revoke_requested().await,
                    Listen::Nothing => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = monitor.lost() => WorkOutcome::Lost(name),
                () = wanted => WorkOutcome::Wanted(name),
            }
        };
        self.start(item, wanted.boxed());
    }

    /// Awaits this for the item, and nothing else.
    fn start(&mut self, item: Item, work: BoxFuture<'static, WorkOutcome>) {
        self.stop(&item);
        let abort = self.spawn(work);
        self.running.insert(item, abort);
    }

    fn spawn(&mut self, work: BoxFuture<'static, WorkOutcome>) -> AbortHandle {
        let (abort, registration) = AbortHandle::new_pair();
        self.work.push(Abortable::new(work, registration));
        abort
    }

    fn stop(&mut self, item: &Item) {
        if let Some(running) = self.running.remove(item) {
            running.abort();
        }
    }

    /// The guard of the item has ended.
    fn forget(&mut self, item: &Item) {
        self.stop(item);
        self.held.remove(item);
        self.share.send_modify(|share| _ = share.held.remove(item));
    }

    fn publish(&self) {
        let shared = self.engine.shared();
        self.share.send_modify(|share| {
            share.members = count_of(shared.members.len());
            share.items = count_of(shared.items.len());
            share.mine = self.engine.mine().to_vec();
        });
    }
}

async fn acquire(queue: &LockQueue) -> Result<Box<Hold>, Error> {
    contend(queue).await.map(Box::new)
}

/// Resolves when the caller of [`Left`] does not wait any more.
async fn cancelled(leaving: &mut Option<Left>) {
    match leaving {
        Some(left) => left.closed().await,
        None => std::future::pending().await,
    }
}

/// Whether the snapshot was complete once.
fn is_known(state: ViewState) -> bool {
    matches!(state, ViewState::Live | ViewState::Stale)
}

/// The children that have a value: a persistent node among the members has none.
fn names<T, N: AsRef<str> + for<'a> From<&'a str>>(snapshot: &Snapshot<T>) -> Vec<Hashed<N>> {
    let children = snapshot.children("").filter(|(_, node)| node.value().is_ok());
    let mut names: Vec<Hashed<N>> = children.map(|(name, _)| Hashed::new(N::from(name))).collect();
    names.sort_unstable_by(|one, other| one.name.as_ref().cmp(other.name.as_ref()));
    names
}
