//! Members of a partition that work, and a board on which they write what they have.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use lockkeeper::partition::{AssignedItem, PartitionMember, ReleaseReason};
use lockkeeper::{Error, Hold, ReleaseError, Txn};
use tokio::sync::watch;

use crate::Grant;

/// Which member has which item, by the guards themselves.
#[derive(Debug, Default)]
pub struct Board {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    current: BTreeMap<String, (String, Arc<AssignedItem>)>,
    grants: usize,
    /// A server ended a session by itself: its guards are valid for a while longer, and no client can know.
    is_suspended: bool,
    violations: Vec<String>,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it writes")
    }

    /// A member has got an item. Two valid guards of one item are a violation.
    fn take(&self, member: &str, item: &Arc<AssignedItem>) {
        let mut state = self.state();
        let name = item.item().to_owned();
        let earlier = state.current.insert(name.clone(), (member.to_owned(), Arc::clone(item)));
        state.grants += 1;
        let is_judged = !state.is_suspended;
        if let Some((other, guard)) =
            earlier.filter(|(_, guard)| is_judged && guard.is_valid() && item.is_valid())
        {
            let tokens = (guard.fencing_token(), item.fencing_token());
            state.violations.push(format!("{name}: valid for {other} and for {member}, tokens {tokens:?}"));
        }
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A member is about to give up an item.
    fn give(&self, item: &Arc<AssignedItem>) {
        let mut state = self.state();
        if state.current.get(item.item()).is_some_and(|(_, guard)| Arc::ptr_eq(guard, item)) {
            state.current.remove(item.item());
        }
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Drops the guards of a member whose work was dropped.
    pub fn drop_guards_of(&self, member: &str) {
        self.state().current.retain(|_, (other, _)| other != member);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The member that has each item, by a valid guard.
    pub fn owners(&self) -> BTreeMap<String, String> {
        let state = self.state();
        let valid = state.current.iter().filter(|(_, (_, guard))| guard.is_valid());
        valid.map(|(item, (member, _))| (item.clone(), member.clone())).collect()
    }

    /// The token of each item's guard.
    pub fn tokens(&self) -> BTreeMap<String, u64> {
        let state = self.state();
        state
            .current
            .iter()
            .map(|(item, (_, guard))| (item.clone(), guard.fencing_token().as_u64()))
            .collect()
    }

    /// How often any member has got any item.
    pub fn grants(&self) -> usize {
        self.state().grants
    }

    /// A server is about to end a session by itself: from now on two valid guards prove nothing.
    pub fn suspend(&self) {
        self.state().is_suspended = true;
    }

    /// Two members that had one item at a time.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// Waits until each item is with this member, and no other item with any.
    pub async fn owners_become(&self, expected: &BTreeMap<String, String>) {
        self.until(|board| board.owners() == *expected).await;
    }

    /// Waits for a change of the board after which it is so.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_so(self) {
            // The board outlives the wait.
            let _ = changes.changed().await;
        }
    }
}

/// Works on the items of a member until it is stopped, then leaves.
///
/// # Errors
///
/// As [`PartitionMember::leave`].
pub async fn work(
    mut member: PartitionMember,
    board: &Board,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let id = member.id().to_owned();
    let mut items = FuturesUnordered::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            item = member.next() => match item {
                Some(item) => items.push(hold(&id, item, board)),
                None => break,
            },
            Some(_) = items.next() => {}
        }
    }
    let mut leave = std::pin::pin!(member.leave());
    loop {
        tokio::select! {
            left = &mut leave => return left,
            Some(_) = items.next() => {}
        }
    }
}

async fn hold(member: &str, item: AssignedItem, board: &Board) -> ReleaseReason {
    let item = Arc::new(item);
    board.take(member, &item);
    let reason = item.release_requested().await;
    board.give(&item);
    reason
}

impl Grant for AssignedItem {
    fn holds(&self) -> Vec<&Hold> {
        vec![self.hold()]
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }

    fn release_requested(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { _ = Self::release_requested(self).await })
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Some(self.hold().txn())
    }
}
