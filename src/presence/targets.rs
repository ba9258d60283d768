//! The data that the application wants, and what became of each call that set it: pure.

use std::sync::Arc;

use crate::error::Refusal;

/// The data that one call set.
#[derive(Clone, Debug)]
struct Target {
    data: Arc<[u8]>,
    /// The number of the call; 0 for the data at the begin.
    number: u64,
    /// A request with it had no answer: the node may have it.
    is_in_doubt: bool,
}

/// The data of all calls whose fate is open.
///
/// A call is applied when the node has had its data or that of a later call, and refused when the server
/// refuses its own write. A refused call is taken back, so the call before it is in force again.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// The last data that our node had, or that of the begin.
    base: Target,
    /// In the order of the calls. The last one is in force.
    pending: Vec<Target>,
    last_number: u64,
    /// The call whose data the node has, as far as is known.
    stored: Option<u64>,
    /// The last call that was applied.
    applied: u64,
    /// Refused, and not taken yet.
    refused: Vec<(u64, Refusal)>,
    /// The last refusal to restore the data of an applied call.
    unrestored: Option<(u64, Refusal)>,
}

impl Targets {
    pub(super) fn new(data: Arc<[u8]>) -> Self {
        let base = Target { data, number: 0, is_in_doubt: false };
        let (pending, refused) = (Vec::new(), Vec::new());
        Self { base, pending, last_number: 0, stored: None, applied: 0, refused, unrestored: None }
    }

    fn in_force(&self) -> &Target {
        self.pending.last().unwrap_or(&self.base)
    }

    /// The data that the node is to have.
    pub(super) fn data(&self) -> &Arc<[u8]> {
        &self.in_force().data
    }

    /// The number of the last call; 0 before the first.
    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Whether the node has the data in force, as far as is known.
    pub(super) fn is_stored(&self) -> bool {
        self.stored == Some(self.in_force().number)
    }

    /// Whether the node has the data of any of the calls, as far as is known.
    pub(super) fn is_any_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// The last call that was applied: those before it are applied, or superseded by it.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// The calls that were refused since the last time.
    pub(super) fn take_refused(&mut self) -> Vec<(u64, Refusal)> {
        std::mem::take(&mut self.refused)
    }

    pub(super) fn set(&mut self, data: Arc<[u8]>) {
        self.last_number += 1;
        self.pending.push(Target { data, number: self.last_number, is_in_doubt: false });
    }

    /// Forgets the data of calls that have ended, are superseded, and were never sent.
    pub(super) fn forget(&mut self, is_awaited: impl Fn(u64) -> bool) {
        let in_force = self.in_force().number;
        self.pending
            .retain(|target| target.is_in_doubt || target.number == in_force || is_awaited(target.number));
    }

    /// A new session: it has no node, and no request of an earlier one concerns its node.
    pub(super) fn reopen(&mut self) {
        self.stored = None;
        self.pending.iter_mut().for_each(|target| target.is_in_doubt = false);
    }

    /// Nothing is known of the data of the node.
    pub(super) fn lose_sight(&mut self) {
        self.stored = None;
    }

    /// The request with the data in force has no answer.
    pub(super) fn doubt(&mut self) {
        self.stored = None;
        if let Some(target) = self.pending.last_mut() {
            target.is_in_doubt = true;
        }
    }

    /// Our node has the data in force.
    pub(super) fn store(&mut self) {
        if let Some(target) = self.pending.pop() {
            self.base = target;
            self.pending.clear();
        }
        self.applied = self.base.number;
        self.stored = Some(self.base.number);
    }

    /// Our node has this data. What another client wrote is replaced.
    pub(super) fn read(&mut self, data: &[u8]) {
        self.stored = None;
        if *data == **self.data() {
            return self.store();
        }
        // A request without an answer was applied, and a later call came before this was seen.
        if let Some(index) =
            self.pending.iter().rposition(|target| target.is_in_doubt && *data == *target.data)
        {
            self.base = self.pending.drain(..=index).next_back().unwrap_or_else(|| self.base.clone());
        }
        if *data == *self.base.data {
            self.applied = self.base.number;
            self.stored = Some(self.base.number);
        }
    }

    /// The write of the data in force is refused, and the node keeps what it has.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if let Some(target) = self.pending.pop() {
            return self.refused.push((target.number, refusal));
        }
        // What another client wrote cannot be replaced in this session.
        self.stored = Some(self.base.number);
        let unrestored = Some((self.base.number, refusal));
        if std::mem::replace(&mut self.unrestored, unrestored) != unrestored {
            self.refused.extend(unrestored);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: &[&str]) -> Targets {
        let mut targets = Targets::new(b"first".as_slice().into());
        calls.iter().for_each(|data| targets.set(data.as_bytes().into()));
        targets
    }

    #[test]
    fn data_that_the_node_has_are_stored_whoever_wrote_them() {
        let mut targets = after(&["new"]);
        targets.read(b"new");
        assert_eq!((targets.is_stored(), targets.applied()), (true, 1));
    }

    #[test]
    fn a_call_that_is_superseded_was_applied_only_if_it_was_sent() {
        for (is_sent, applied) in [(false, 0), (true, 1)] {
            let mut targets = after(&["one"]);
            if is_sent {
                targets.doubt();
            }
            targets.set(b"other".as_slice().into());
            targets.read(b"one");
            assert_eq!((targets.applied(), targets.is_any_stored()), (applied, is_sent));
            assert!(!targets.is_stored());
        }
    }
}
