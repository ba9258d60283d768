//! Who waits for a node's end in this process, and what becomes of the place then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::{OwnNode, Word};
use crate::error::Lost;
use crate::sequence::Kind;

/// How many are let in by one delete, at most: each is checked to stand by the same transaction.
const HEADS_MAX: usize = 32;

/// No number of a place.
pub(super) const NOBODY: i32 = -1;

/// How the place of a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With nobody in front, and nothing under way that rests on it: who is behind is the head now.
    AsHead,
    /// Some other way: the line has to be looked at.
    Left,
}

/// How a node is given up.
pub(crate) enum Leave<'a> {
    /// As the head of its line; these have nobody in front then.
    AsHead(&'a [Arc<OwnNode>]),
    /// Some other way.
    Otherwise,
}

/// Who waits for a node's end.
pub(super) enum Behind {
    Nobody,
    /// Never empty.
    Wait(Vec<Arc<OwnNode>>),
    Over(End),
}

/// What a waiter is told by the one in front.
#[derive(Default)]
pub(super) struct Told {
    pub(super) is_head: AtomicBool,
    look: AtomicBool,
    /// What the holder before had to tell.
    word: OnceLock<Word>,
}

/// What a waiter makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is the head of the line.
    Head,
    /// It has to look.
    Look,
}

impl OwnNode {
    /// How its place ended, if it has.
    pub(crate) fn end(&self) -> Option<End> {
        match *self.behind.lock() {
            Behind::Over(end) => Some(end),
            _ => None,
        }
    }

    /// From now on `me` waits for this one's end; unless it has come.
    pub(crate) fn follow(&self, me: &Arc<Self>) -> Result<(), End> {
        let mut behind = self.behind.lock();
        if let Behind::Over(end) = *behind {
            return Err(end);
        }
        let number = self.position.as_ref().map_or(NOBODY, |position| position.sequence);
        let waits_already = me.follows() == number;
        match &mut *behind {
            // Of several readers everyone waits for the same writer, and of a mutex's contenders only the next one.
            Behind::Wait(waiting) if me.kind() != Some(Kind::Lock) => {
                if waiting.len() == waiting.capacity() {
                    // Not each time: of thousands everyone would look at all the others.
                    waiting.retain(|other| other.end().is_none());
                }
                if !waits_already || !waiting.iter().any(|other| Arc::ptr_eq(other, me)) {
                    waiting.push(Arc::clone(me));
                }
            }
            behind => {
                let earlier = std::mem::replace(behind, Behind::Wait(vec![Arc::clone(me)]));
                if let Behind::Wait(replaced) = earlier {
                    // Whose place somebody else has is not in line any more, and may not know.
                    let others = replaced.iter().filter(|other| !Arc::ptr_eq(other, me));
                    others.for_each(|other| other.tell(End::Left));
                }
            }
        }
        me.follows.store(number, Ordering::Release);
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.position.as_ref().map(|position| position.kind)
    }

    /// The number of the node of ours that it waits for; that one may be gone by now.
    pub(in crate::session) fn follows(&self) -> i32 {
        self.follows.load(Ordering::Acquire)
    }

    /// Nobody is in front whom it has to wait for.
    pub(crate) fn set_clear(&self) {
        self.clear.store(true, Ordering::Release);
    }

    /// Whether it is known that nobody is in front whom it has to wait for.
    pub(crate) fn is_clear(&self) -> bool {
        self.clear.load(Ordering::Acquire) || self.is_held() || self.is_told_head()
    }

    /// Whether `next`, which waits for this one, has nobody in front when this one was the head and is gone.
    pub(crate) fn lets_in(&self, next: &Self) -> bool {
        match (self.kind(), next.kind()) {
            (Some(Kind::Lock), Some(Kind::Lock)) | (Some(Kind::Write), Some(Kind::Read)) => true,
            // A writer looks for itself: beside a reader, or in a writer's place, other readers may stand.
            _ => false,
        }
    }

    /// Those of `waiting` who have nobody in front when this one, the head, is gone; and the others.
    fn split(&self, waiting: Vec<Arc<Self>>) -> (Vec<Arc<Self>>, Vec<Arc<Self>>) {
        let (mut heads, mut others): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|next| self.lets_in(next) && next.end().is_none());
        others.extend(heads.drain(HEADS_MAX.min(heads.len())..));
        (heads, others)
    }

    /// Ends the place, and tells who waits for that. `send` sends what deletes the node; if the next one is the head then,
    /// it gets that one's path, so that it may be checked to stand. Nobody is told before it is sent.
    ///
    /// Without a connection nothing is sent, only kept for later: then the next one looks. Until the check is
    /// on its way nobody keeps others out, if both nodes were deleted by hand meanwhile.
    pub(crate) fn leave<T>(&self, send: impl FnOnce(Leave<'_>) -> T) -> T {
        let mut behind = self.behind.lock();
        if matches!(*behind, Behind::Over(_)) {
            return send(Leave::Otherwise);
        }
        let connection = self.session.live_connection();
        let is_head = self.is_held() || self.told.is_head.load(Ordering::Acquire);
        let may_pass_on = is_head && self.is_settled() && self.loss.get().is_none() && connection.is_some();
        let waiting = match std::mem::replace(&mut *behind, Behind::Nobody) {
            Behind::Wait(waiting) => waiting,
            Behind::Nobody | Behind::Over(_) => Vec::new(),
        };
        let (heads, others) = match may_pass_on {
            true => self.split(waiting),
            false => (Vec::new(), waiting),
        };
        let sent = send(match may_pass_on {
            true => Leave::AsHead(&heads),
            false => Leave::Otherwise,
        });
        // The link may have broken while it was sent.
        let is_passed_on = may_pass_on && self.session.live_connection() == connection;
        let end = if is_passed_on { End::AsHead } else { End::Left };
        *behind = Behind::Over(end);
        heads.iter().for_each(|next| next.tell(end));
        others.iter().for_each(|next| next.tell(End::Left));
        sent
    }

    /// The node is gone, by something else than a delete that [checks](Self::leave) the next one: who waits for that looks at
    /// the line, and at its own node with it.
    pub(crate) fn vanish(&self) {
        let behind = match &mut *self.behind.lock() {
            Behind::Over(_) => return,
            behind => std::mem::replace(behind, Behind::Over(End::Left)),
        };
        if let Behind::Wait(waiting) = behind {
            waiting.iter().for_each(|next| next.tell(End::Left));
        }
    }

    /// Who waits for the end of this one, in this process and in single file.
    pub(crate) fn next_in_line(&self) -> Option<Arc<Self>> {
        match &*self.behind.lock() {
            Behind::Wait(waiting) if self.kind() == Some(Kind::Lock) => {
                waiting.first().filter(|next| next.end().is_none()).cloned()
            }
            _ => None,
        }
    }

    /// A transaction deleted the node, and checked that `next` stands: it is the head from now on, and gets `word`. Whoever
    /// else waits looks at the line.
    pub(crate) fn pass_on(&self, next: &Arc<Self>, word: Option<Word>) {
        let mut behind = self.behind.lock();
        let is_next = match &*behind {
            Behind::Wait(waiting) => waiting.first().is_some_and(|waits| Arc::ptr_eq(waits, next)),
            _ => false,
        };
        if is_next && self.is_held() && self.is_settled() && self.loss.get().is_none() {
            *behind = Behind::Over(End::AsHead);
            drop(behind);
            next.set_word(word);
            next.tell(End::AsHead);
        }
    }

    pub(crate) fn set_word(&self, word: Option<Word>) {
        if let Some(word) = word {
            let _ = self.told.word.set(word);
        }
    }

    /// What the holder before this one told.
    pub(crate) fn word(&self) -> Option<&Word> {
        self.told.word.get()
    }

    fn tell(&self, end: End) {
        // Under the lock: who is told to be the head passes that on when it ends, or has ended before.
        let _behind = self.behind.lock();
        match end {
            End::AsHead => self.told.is_head.store(true, Ordering::Release),
            End::Left => self.told.look.store(true, Ordering::Release),
        }
        self.changed.notify_waiters();
    }

    /// Whether the one in front has told that this is the head.
    pub(crate) fn is_told_head(&self) -> bool {
        self.told.is_head.load(Ordering::Acquire)
    }

    /// Resolves when the one in front has told something, or the node is lost.
    pub(crate) async fn turn(&self) -> Result<Turn, Lost> {
        self.until(|| match self.check() {
            Err(lost) => Some(Err(lost)),
            Ok(()) if self.is_told_head() => Some(Ok(Turn::Head)),
            Ok(()) => self.told.look.swap(false, Ordering::AcqRel).then_some(Ok(Turn::Look)),
        })
        .await
    }
}
