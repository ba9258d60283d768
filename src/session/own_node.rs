use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::{Shared, select};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::local::Position;
use super::{Reservation, Session};
use crate::backend::{Watch, WatchEvent};
use crate::clock::BootInstant;
use crate::error::{LossReason, Lost};
use crate::sequence::Kind;

/// A contender's node of ours, waiting or held: what is known of whether it still stands.
///
/// A hold, once lost, stays lost, whatever is learned later.
pub(crate) struct OwnNode {
    number: u64,
    path: Arc<str>,
    session: Session,
    held: AtomicBool,
    /// A transaction of ours that deletes it is on its way: that it is gone is then no loss.
    leaving: AtomicBool,
    /// When it was granted.
    granted_at: OnceLock<BootInstant>,
    /// The session's keeper watches the node for its holder.
    looked_out_for: AtomicBool,
    /// How often the lease had lapsed when it was granted.
    lapses: AtomicU64,
    /// Tells of the loss, and of what the one in front has told.
    changed: Notify,
    /// Why it is lost, and when that was found out.
    loss: OnceLock<(LossReason, BootInstant)>,
    /// A watch on the node itself, where one was set while waiting.
    ///
    /// Shared, since several look at it at once: each has its own waker in it.
    watch: Mutex<Option<(SharedWatch, Reservation)>>,
    /// Whom to tell of the loss of what was held.
    listener: Mutex<Option<OnLoss>>,
    /// Somebody was seen to ask for it.
    asked_for: AtomicBool,
    /// Its place, if its line is in single file.
    position: Option<Position>,
    /// The connection that made it, unless its owner was seen since.
    made_on: Option<u64>,
    /// Who comes next in this process, until it is told.
    behind: Mutex<Behind>,
    /// The number of the node of ours that it waits for.
    follows: AtomicI32,
    /// It was seen to have nobody in front whom it has to wait for.
    clear: AtomicBool,
    /// What the one in front has told.
    told: Told,
    /// How many transactions rest on it of which it is not known whether they are done.
    unsettled: AtomicUsize,
    /// What it says about itself.
    data: Arc<[u8]>,
    /// How many were in front when it was looked last.
    ahead: AtomicUsize,
}

/// What a holder tells the next one, if that is in this process.
pub(crate) type Word = Arc<dyn Any + Send + Sync>;

/// How many are let in by one delete, at most: each is checked to stand by the same transaction.
const HEADS_MAX: usize = 32;

/// No number of a place.
const NOBODY: i32 = -1;

/// A watch that several look at.
pub(super) type SharedWatch = Shared<Watch>;

/// Told once, of the loss of a hold.
pub(crate) type OnLoss = Box<dyn Fn(Lost) + Send + Sync>;

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
enum Behind {
    Nobody,
    /// Never empty.
    Wait(Vec<Arc<OwnNode>>),
    Over(End),
}

/// What a waiter is told by the one in front.
#[derive(Default)]
struct Told {
    is_head: AtomicBool,
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

/// A transaction that rests on nodes. Dropped without a definite answer, it may be done at any time while they stand.
pub(crate) struct Resting(Vec<Arc<OwnNode>>);

impl Resting {
    pub(crate) fn on<'a>(nodes: impl IntoIterator<Item = &'a Arc<OwnNode>>) -> Self {
        let nodes: Vec<Arc<OwnNode>> = nodes.into_iter().cloned().collect();
        for node in &nodes {
            node.unsettled.fetch_add(1, Ordering::AcqRel);
        }
        Self(nodes)
    }

    /// It is known what became of it.
    pub(crate) fn settle(self) {
        for node in self.0 {
            node.unsettled.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl OwnNode {
    pub(super) fn new(
        number: u64,
        path: Arc<str>,
        session: Session,
        position: Option<Position>,
        made_on: Option<u64>,
        data: Arc<[u8]>,
    ) -> Self {
        Self {
            number,
            path,
            session,
            held: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            granted_at: OnceLock::new(),
            looked_out_for: AtomicBool::new(false),
            lapses: AtomicU64::new(0),
            changed: Notify::new(),
            loss: OnceLock::new(),
            watch: Mutex::new(None),
            listener: Mutex::new(None),
            asked_for: AtomicBool::new(false),
            position,
            made_on,
            behind: Mutex::new(Behind::Nobody),
            follows: AtomicI32::new(NOBODY),
            clear: AtomicBool::new(false),
            told: Told::default(),
            unsettled: AtomicUsize::new(0),
            data,
            ahead: AtomicUsize::new(0),
        }
    }

    pub(super) fn made_on(&self) -> Option<u64> {
        self.made_on
    }

    pub(crate) fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn ahead(&self) -> usize {
        self.ahead.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ahead(&self, ahead: usize) {
        self.ahead.store(ahead, Ordering::Relaxed);
    }

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
        match &mut *behind {
            // Of several readers everyone waits for the same writer, and of a mutex's contenders only the next one.
            Behind::Wait(waiting) if me.kind() != Some(Kind::Lock) => {
                waiting.retain(|other| other.end().is_none() && !Arc::ptr_eq(other, me));
                waiting.push(Arc::clone(me));
            }
            behind => *behind = Behind::Wait(vec![Arc::clone(me)]),
        }
        let follows = self.position.as_ref().map_or(NOBODY, |position| position.sequence);
        me.follows.store(follows, Ordering::Release);
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.position.as_ref().map(|position| position.kind)
    }

    /// The number of the node of ours that it waits for; that one may be gone by now.
    pub(super) fn follows(&self) -> i32 {
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
    pub(crate) fn leave<T>(&self, send: impl FnOnce(Leave<'_>) -> T) -> T {
        let mut behind = self.behind.lock();
        if matches!(*behind, Behind::Over(_)) {
            return send(Leave::Otherwise);
        }
        let is_head = self.is_held() || self.told.is_head.load(Ordering::Acquire);
        let end =
            if is_head && self.is_settled() && self.loss.get().is_none() { End::AsHead } else { End::Left };
        let waiting = match std::mem::replace(&mut *behind, Behind::Over(end)) {
            Behind::Wait(waiting) => waiting,
            Behind::Nobody | Behind::Over(_) => Vec::new(),
        };
        let (heads, others) = match end {
            End::AsHead => self.split(waiting),
            End::Left => (Vec::new(), waiting),
        };
        let sent = send(match end {
            End::AsHead => Leave::AsHead(&heads),
            End::Left => Leave::Otherwise,
        });
        heads.iter().for_each(|next| next.tell(End::AsHead));
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

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its name in its directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn set_leaving(&self, leaving: bool) {
        self.leaving.store(leaving, Ordering::Release);
    }

    /// The node was seen not to be there.
    pub(super) fn is_missing(&self) {
        if !self.leaving.load(Ordering::Acquire) {
            self.lose(LossReason::NodeDeleted);
        }
    }

    pub(super) fn grant(&self, lapses: u64, now: BootInstant) {
        let _ = self.granted_at.set(now);
        self.lapses.store(lapses, Ordering::Release);
        self.held.store(true, Ordering::Release);
    }

    /// Calls `listener`, and none that was set before, when the hold is lost; now, if it is.
    pub(crate) fn on_loss(&self, listener: OnLoss) {
        let earlier = self.listener.lock().replace(listener);
        drop(earlier);
        if let Err(lost) = self.verdict() {
            self.tell_loss(lost);
        }
    }

    fn tell_loss(&self, lost: Lost) {
        // Once: whoever takes it tells.
        let listener = self.listener.lock().take();
        if let Some(listener) = listener {
            listener(lost);
        }
    }

    /// Whether nothing is under way that rests on it.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) == 0
    }

    pub(crate) fn set_asked_for(&self) {
        self.asked_for.store(true, Ordering::Release);
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked_for.load(Ordering::Acquire)
    }

    pub(super) fn is_held_since(&self, instant: BootInstant) -> bool {
        self.is_held() && self.granted_at.get().is_some_and(|at| *at <= instant)
    }

    /// `false` when somebody looks out for it already.
    pub(super) fn begin_lookout(&self) -> bool {
        !self.looked_out_for.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_lookout(&self) {
        self.looked_out_for.store(false, Ordering::Release);
    }

    pub(super) fn watch(&self) -> Option<SharedWatch> {
        self.watch.lock().as_ref().map(|(watch, _)| watch.clone())
    }

    pub(crate) fn set_watch(&self, watch: Watch, reservation: Reservation) {
        *self.watch.lock() = Some((watch.shared(), reservation));
    }

    /// Gives the watch up: it may not have come through a reconnect.
    pub(crate) fn forget_watch(&self) {
        let forgotten = self.watch.lock().take();
        drop(forgotten);
    }

    /// Whether a watch is set that has not fired; one that nobody has read yet is none.
    pub(crate) fn has_watch(&self) -> bool {
        self.look();
        self.watch.lock().is_some()
    }

    /// Ends the hold, or the wait. Returns whether this was the first to do so.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        let first = self.loss.set((reason, self.session.now())).is_ok();
        if first {
            // What is lost needs no confirmation any more.
            self.session.disown(self);
            self.vanish();
            if self.is_held() {
                warn!(path = self.path(), %reason, "lost what was held");
            }
            self.changed.notify_waiters();
            self.tell_loss(self.loss_by(reason));
        }
        first
    }

    /// Reads the clock and everything else that is known, and says whether the node is still ours.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        self.look();
        self.verdict()
    }

    /// Resolves when the node is lost.
    pub(crate) async fn lost(&self) -> Lost {
        self.until(|| self.check().err()).await
    }

    /// Resolves when `look` sees something.
    async fn until<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            // Armed first, then looked: no change falls between.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(seen) = look() {
                return seen;
            }
            // The session's keeper watches the clock and the session, and tells; the watch on the node tells by itself.
            match self.watch() {
                Some(watch) => drop(select(changed, watch).await),
                None => changed.await,
            }
        }
    }

    /// The instant before which the node cannot have gone with its session; in the past once it is lost.
    pub(crate) fn valid_until(&self) -> BootInstant {
        let lease = self.session.lease_valid_until();
        match (self.check(), self.loss.get()) {
            (Err(_), Some((_, lost_at))) => lease.min(*lost_at),
            _ => lease,
        }
    }

    pub(crate) fn loss_by(&self, reason: LossReason) -> Lost {
        Lost { path: self.path.to_string(), reason }
    }

    pub(crate) fn verdict(&self) -> Result<(), Lost> {
        match self.loss.get() {
            Some((reason, _)) => Err(self.loss_by(*reason)),
            None => Ok(()),
        }
    }

    fn look(&self) {
        if self.loss.get().is_some() {
            return;
        }
        if let Some(reason) = self.session.loss() {
            self.lose(reason);
            return;
        }
        if self.is_held() && self.session.lapses() != self.lapses.load(Ordering::Acquire) {
            self.session.give_up(self);
            return;
        }
        let event = {
            let mut watch = self.watch.lock();
            let event = watch.as_ref().and_then(|(watch, _)| watch.clone().now_or_never());
            if event.is_some() {
                *watch = None;
            }
            event
        };
        // A changed node is still ours, and the end of the session is told by the session.
        if event == Some(WatchEvent::Deleted) {
            self.is_missing();
        }
    }
}

impl Debug for OwnNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnNode")
            .field("path", &self.path)
            .field("held", &self.is_held())
            .field("lost", &self.loss.get())
            .finish_non_exhaustive()
    }
}
