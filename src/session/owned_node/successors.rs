//! Who waits for a node's end in this process, and what becomes of the place then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::{HandOffPayload, OwnedNode};
use crate::error::Lost;
use crate::queue::Kind;

/// How many are let in by one delete, at most: each is checked to stand by the same transaction.
const HEADS_MAX: usize = 32;

/// No number of a place.
pub(super) const NOBODY: i32 = -1;

/// How the place of a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// With nobody in front, and nothing under way that rests on it: who is behind is the head now.
    HandOff,
    /// Some other way: the line has to be looked at.
    Abandoned,
}

/// How a node is given up.
pub(crate) enum DeletePlan<'a> {
    /// As the head of its line; these have nobody in front then.
    HandOff(&'a [Arc<OwnedNode>]),
    /// Some other way.
    Plain,
}

/// Who waits for a node's end.
pub(super) enum Successors {
    Nobody,
    /// Never empty.
    Wait(Vec<Arc<OwnedNode>>),
    Over(Release),
}

/// What a waiter is told by the one in front.
#[derive(Default)]
pub(super) struct HandOffFlags {
    pub(super) is_head: AtomicBool,
    recheck: AtomicBool,
    /// What the holder before had to tell.
    payload: OnceLock<HandOffPayload>,
}

/// What a waiter makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalWake {
    /// It is the head of the line.
    Head,
    /// It has to look.
    Recheck,
}

impl OwnedNode {
    /// How its place ended, if it has.
    pub(crate) fn released(&self) -> Option<Release> {
        match *self.successors.lock() {
            Successors::Over(end) => Some(end),
            _ => None,
        }
    }

    /// From now on `me` waits for this one's end; unless it has come.
    pub(crate) fn add_successor(&self, me: &Arc<Self>) -> Result<(), Release> {
        let mut successors = self.successors.lock();
        if let Successors::Over(end) = *successors {
            return Err(end);
        }
        let number = self.sequence_key.as_ref().map_or(NOBODY, |sequence_key| sequence_key.sequence);
        let waits_already = me.predecessor_sequence() == number;
        match &mut *successors {
            // Of several readers everyone waits for the same writer, and of a mutex's contenders only the next one.
            Successors::Wait(waiting) if me.kind() != Some(Kind::Lock) => {
                if waiting.len() == waiting.capacity() {
                    // Not each time: of thousands everyone would look at all the others.
                    waiting.retain(|other| other.released().is_none());
                }
                if !waits_already || !waiting.iter().any(|other| Arc::ptr_eq(other, me)) {
                    waiting.push(Arc::clone(me));
                }
            }
            successors => {
                let earlier = std::mem::replace(successors, Successors::Wait(vec![Arc::clone(me)]));
                if let Successors::Wait(replaced) = earlier {
                    // Whose place somebody else has is not in line any more, and may not know.
                    let others = replaced.iter().filter(|other| !Arc::ptr_eq(other, me));
                    others.for_each(|other| other.notify(Release::Abandoned));
                }
            }
        }
        me.predecessor_sequence.store(number, Ordering::Release);
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.sequence_key.as_ref().map(|sequence_key| sequence_key.kind)
    }

    /// The number of the node of ours that it waits for; that one may be gone by now.
    pub(in crate::session) fn predecessor_sequence(&self) -> i32 {
        self.predecessor_sequence.load(Ordering::Acquire)
    }

    /// Nobody is in front whom it has to wait for.
    pub(crate) fn set_no_predecessor(&self) {
        self.no_predecessor.store(true, Ordering::Release);
    }

    /// Whether it is known that nobody is in front whom it has to wait for.
    pub(crate) fn has_no_predecessor(&self) -> bool {
        self.no_predecessor.load(Ordering::Acquire) || self.is_held() || self.has_hand_off()
    }

    /// Whether `next`, which waits for this one, has nobody in front when this one was the head and is gone.
    pub(crate) fn hands_off_to(&self, next: &Self) -> bool {
        match (self.kind(), next.kind()) {
            (Some(Kind::Lock), Some(Kind::Lock)) | (Some(Kind::Write), Some(Kind::Read)) => true,
            // A writer looks for itself: beside a reader, or in a writer's place, other readers may stand.
            _ => false,
        }
    }

    /// Those of `waiting` who have nobody in front when this one, the head, is gone; and the others.
    fn split(&self, waiting: Vec<Arc<Self>>) -> (Vec<Arc<Self>>, Vec<Arc<Self>>) {
        let (mut heads, mut others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|next| self.hands_off_to(next) && next.released().is_none());
        others.extend(heads.drain(HEADS_MAX.min(heads.len())..));
        (heads, others)
    }

    /// Ends the place, and tells who waits for that. `send` sends what deletes the node; if the next one is the head then,
    /// it gets that one's path, so that it may be checked to stand. Nobody is told before it is sent.
    ///
    /// Without a connection nothing is sent, only kept for later: then the next one looks. Until the check is
    /// on its way nobody keeps others out, if both nodes were deleted by hand meanwhile.
    pub(crate) fn release_with<T>(&self, send: impl FnOnce(DeletePlan<'_>) -> T) -> T {
        let mut successors = self.successors.lock();
        if matches!(*successors, Successors::Over(_)) {
            return send(DeletePlan::Plain);
        }
        let connection = self.session.live_connection();
        let is_head = self.is_held() || self.hand_off_flags.is_head.load(Ordering::Acquire);
        let may_pass_on = is_head && self.is_settled() && self.loss.get().is_none() && connection.is_some();
        let waiting = match std::mem::replace(&mut *successors, Successors::Nobody) {
            Successors::Wait(waiting) => waiting,
            Successors::Nobody | Successors::Over(_) => Vec::new(),
        };
        let (heads, others) = match may_pass_on {
            true => self.split(waiting),
            false => (Vec::new(), waiting),
        };
        let sent = send(match may_pass_on {
            true => DeletePlan::HandOff(&heads),
            false => DeletePlan::Plain,
        });
        // The link may have broken while it was sent.
        let is_passed_on = may_pass_on && self.session.live_connection() == connection;
        let end = if is_passed_on { Release::HandOff } else { Release::Abandoned };
        *successors = Successors::Over(end);
        heads.iter().for_each(|next| next.notify(end));
        others.iter().for_each(|next| next.notify(Release::Abandoned));
        sent
    }

    /// The node is gone, by something else than a delete that [checks](Self::release_with) the next one: who waits for that looks at
    /// the line, and at its own node with it.
    pub(crate) fn abandon(&self) {
        let successors = match &mut *self.successors.lock() {
            Successors::Over(_) => return,
            successors => std::mem::replace(successors, Successors::Over(Release::Abandoned)),
        };
        if let Successors::Wait(waiting) = successors {
            waiting.iter().for_each(|next| next.notify(Release::Abandoned));
        }
    }

    /// Who waits for the end of this one, in this process and in single file.
    pub(crate) fn successor(&self) -> Option<Arc<Self>> {
        match &*self.successors.lock() {
            Successors::Wait(waiting) if self.kind() == Some(Kind::Lock) => {
                waiting.first().filter(|next| next.released().is_none()).cloned()
            }
            _ => None,
        }
    }

    /// A transaction deleted the node, and checked that `next` stands: it is the head from now on, and gets `payload`. Whoever
    /// else waits looks at the line.
    pub(crate) fn hand_off(&self, next: &Arc<Self>, payload: Option<HandOffPayload>) {
        let mut successors = self.successors.lock();
        let is_next = match &*successors {
            Successors::Wait(waiting) => waiting.first().is_some_and(|waits| Arc::ptr_eq(waits, next)),
            _ => false,
        };
        if is_next && self.is_held() && self.is_settled() && self.loss.get().is_none() {
            *successors = Successors::Over(Release::HandOff);
            drop(successors);
            next.set_payload(payload);
            next.notify(Release::HandOff);
        }
    }

    pub(crate) fn set_payload(&self, payload: Option<HandOffPayload>) {
        if let Some(payload) = payload {
            let _ = self.hand_off_flags.payload.set(payload);
        }
    }

    /// What the holder before this one told.
    pub(crate) fn payload(&self) -> Option<&HandOffPayload> {
        self.hand_off_flags.payload.get()
    }

    fn notify(&self, end: Release) {
        // Under the lock: who is told to be the head passes that on when it ends, or has ended before.
        let _behind = self.successors.lock();
        match end {
            Release::HandOff => self.hand_off_flags.is_head.store(true, Ordering::Release),
            Release::Abandoned => self.hand_off_flags.recheck.store(true, Ordering::Release),
        }
        self.changed.notify_waiters();
    }

    /// Whether the one in front has told that this is the head.
    pub(crate) fn has_hand_off(&self) -> bool {
        self.hand_off_flags.is_head.load(Ordering::Acquire)
    }

    /// Resolves when the one in front has told something, or the node is lost.
    pub(crate) async fn local_wake(&self) -> Result<LocalWake, Lost> {
        self.until(|| match self.check() {
            Err(lost) => Some(Err(lost)),
            Ok(()) if self.has_hand_off() => Some(Ok(LocalWake::Head)),
            Ok(()) => {
                self.hand_off_flags.recheck.swap(false, Ordering::AcqRel).then_some(Ok(LocalWake::Recheck))
            }
        })
        .await
    }
}
