//! What is seen of who else wants the node, and what follows from that.

use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, Hold, Outlook};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::super::keep::Keep;
use super::Keeper;

/// The time of one node in this process, from its grant until it is given up.
pub(super) struct Stay {
    sight: Arc<Sight>,
    /// Dropped, it ends the task that looks.
    _over: oneshot::Sender<()>,
}

/// What the task that looks has seen.
pub(super) struct Sight {
    keep: Keep,
    others: Mutex<Others>,
    /// The node is needed for more than one guard: from now on it is looked who else wants it.
    needed: Notify,
    /// It lingers.
    lingers: Notify,
}

#[derive(Clone, Copy)]
enum Others {
    /// Nobody has looked yet.
    NotAsked,
    /// It is not known whether there are any.
    Unknown(Count),
    None,
    /// There are some.
    Some(Count),
    /// Nobody looks any more.
    Blind,
}

/// What is left for this process, once others wait or may wait.
#[derive(Clone, Copy)]
struct Count {
    times_left: u32,
    until: Deadline,
}

impl Count {
    fn from_now(keep: Keep) -> Self {
        Self { times_left: keep.at_most, until: Deadline::after(keep.for_at_most) }
    }

    /// One time less, if there is one left.
    fn take(self) -> Option<Self> {
        let times_left = self.times_left.checked_sub(1).filter(|_| !self.until.has_passed())?;
        Some(Self { times_left, ..self })
    }
}

impl Stay {
    /// Whether it may be passed on once more; counts it.
    pub(super) fn may_be_passed_on(&self) -> bool {
        self.sight.is_needed();
        let mut others = self.sight.others.lock();
        match *others {
            Others::None => true,
            Others::NotAsked | Others::Blind => false,
            Others::Unknown(count) => match count.take() {
                Some(count) => {
                    *others = Others::Unknown(count);
                    true
                }
                None => false,
            },
            Others::Some(count) => match count.take() {
                Some(count) => {
                    *others = Others::Some(count);
                    true
                }
                None => false,
            },
        }
    }

    pub(super) fn may_linger(&self) -> bool {
        let is_wanted_by_none_known =
            || matches!(*self.sight.others.lock(), Others::None | Others::Unknown(_));
        !self.sight.keep.linger.is_zero() && {
            self.sight.is_needed();
            is_wanted_by_none_known()
        }
    }

    pub(super) fn lingers(&self) {
        self.sight.lingers.notify_one();
    }

    pub(super) fn is_seen_by(&self, sight: &Arc<Sight>) -> bool {
        Arc::ptr_eq(&self.sight, sight)
    }

    pub(super) fn sight(&self) -> &Arc<Sight> {
        &self.sight
    }
}

impl Sight {
    /// Somebody has to look from now on.
    pub(super) fn is_needed(&self) {
        let mut others = self.others.lock();
        if matches!(*others, Others::NotAsked) {
            *others = Others::Unknown(Count::from_now(self.keep));
            self.needed.notify_one();
        }
    }

    fn is_alone(&self, is_alone: bool) {
        let mut others = self.others.lock();
        *others = match *others {
            Others::Unknown(_) if is_alone => Others::None,
            Others::None if !is_alone => Others::Unknown(Count::from_now(self.keep)),
            other => other,
        };
    }

    fn is_wanted(&self) {
        let mut others = self.others.lock();
        *others = match *others {
            Others::Unknown(count) | Others::Some(count) => Others::Some(count),
            Others::NotAsked | Others::None => Others::Some(Count::from_now(self.keep)),
            Others::Blind => Others::Blind,
        };
    }
}

/// Begins the stay of what was granted just now. The task is there from the beginning, since a guard may be dropped where
/// none can be begun; it looks only when it is needed.
pub(super) fn attend(keeper: &Arc<Keeper>, keep: Keep, hold: &Hold) -> Arc<Stay> {
    let sight = Arc::new(Sight {
        keep,
        others: Mutex::new(Others::NotAsked),
        needed: Notify::new(),
        lingers: Notify::new(),
    });
    let (over, is_over) = oneshot::channel();
    let watchman = Watchman { keeper: Arc::downgrade(keeper), sight: Arc::clone(&sight) };
    // Where it cannot run, it is dropped, and sees nothing.
    hold.manager().spawn(watchman.watch(hold.outlook(), is_over));
    Arc::new(Stay { sight, _over: over })
}

/// Looks, for as long as the stay lasts. Dropped, as with its runtime, it leaves nothing that nobody looks after.
struct Watchman {
    keeper: Weak<Keeper>,
    sight: Arc<Sight>,
}

impl Watchman {
    async fn watch(self, outlook: Outlook, over: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = over => {}
            _ = outlook.lost() => {
                if let Some(keeper) = self.keeper.upgrade() {
                    keeper.is_lost(&self.sight);
                }
            }
            () = self.look(&outlook) => {}
            () = self.time_linger() => {}
        }
    }

    async fn look(&self, outlook: &Outlook) {
        self.sight.needed.notified().await;
        outlook.until_wanted(|is_alone| self.sight.is_alone(is_alone)).await;
        self.sight.is_wanted();
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.end_linger(&self.sight, false);
        }
        std::future::pending().await
    }

    async fn time_linger(&self) {
        loop {
            let until = self.keeper.upgrade().and_then(|keeper| keeper.lingers_until(&self.sight));
            match until {
                None => self.sight.lingers.notified().await,
                Some(until) => until.passed().await,
            }
            if let Some(keeper) = self.keeper.upgrade() {
                keeper.end_linger(&self.sight, true);
            }
        }
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        *self.sight.others.lock() = Others::Blind;
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.end_linger(&self.sight, false);
        }
    }
}
