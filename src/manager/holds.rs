//! What is held through this manager, and what becomes of it: for those who ask, and those who listen.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tracing::warn;

use crate::error::Lost;
use crate::meter::Held;
use crate::session::OwnNode;
use crate::token::FencingToken;

/// What became of a hold of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldEvent {
    /// It was granted.
    Acquired {
        /// The node it rests on; the first, if there are several.
        path: String,
        /// Its fencing token.
        token: FencingToken,
    },
    /// Its holder gave it up, by a release or by dropping it.
    Released {
        /// The node it rested on.
        path: String,
    },
    /// It ended before its holder gave it up.
    Lost(Lost),
}

/// A stream of what becomes of holds, from the moment of subscribing: none left out, and none told twice.
///
/// An event is kept until it is taken: take them, or drop the stream. It ends with the manager.
#[derive(Debug)]
pub struct HoldEvents {
    receiver: mpsc::UnboundedReceiver<HoldEvent>,
}

impl HoldEvents {
    /// The next event; `None` once the manager is gone.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an event not returned is returned next time.
    pub async fn next(&mut self) -> Option<HoldEvent> {
        self.receiver.recv().await
    }
}

impl Stream for HoldEvents {
    type Item = HoldEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<HoldEvent>> {
        self.receiver.poll_recv(context)
    }
}

/// What is held, by line, and who listens.
#[derive(Default)]
pub(crate) struct HoldBoard {
    lines: Mutex<BTreeMap<String, Books>>,
    /// How many holds have begun and not ended.
    held: AtomicUsize,
    /// Tells that nothing is held any more.
    emptied: Notify,
}

#[derive(Default)]
struct Books {
    heralds: Vec<Weak<Herald>>,
    listeners: Vec<mpsc::UnboundedSender<HoldEvent>>,
}

impl HoldBoard {
    /// `lines` are the keys under which holds are announced.
    pub(crate) fn listen(&self, lines: impl IntoIterator<Item = String>) -> HoldEvents {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut books = self.lines.lock();
        books.retain(|_, here| {
            here.listeners.retain(|listener| !listener.is_closed());
            !here.heralds.is_empty() || !here.listeners.is_empty()
        });
        for line in lines {
            books.entry(line).or_default().listeners.push(sender.clone());
        }
        HoldEvents { receiver }
    }

    /// Whether something is held, and valid, in this line.
    pub(crate) fn is_held(&self, line: &str) -> bool {
        let heralds: Vec<Arc<Herald>> = match self.lines.lock().get(line) {
            Some(here) => here.heralds.iter().filter_map(Weak::upgrade).collect(),
            None => return false,
        };
        heralds.iter().any(|herald| herald.is_valid())
    }

    /// How many holds there are that were not lost.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Resolves once nothing is held.
    pub(crate) async fn nothing_held(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.held() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn ended(&self) {
        if self.held.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.emptied.notify_waiters();
        }
    }

    fn tell(&self, line: &str, event: &HoldEvent) {
        if let Some(here) = self.lines.lock().get_mut(line) {
            here.listeners.retain(|listener| listener.send(event.clone()).is_ok());
        }
    }

    /// Takes an ended hold, and what is left of others, out of the books.
    fn strike_out(&self, line: &str) {
        let mut lines = self.lines.lock();
        if let Some(here) = lines.get_mut(line) {
            here.heralds.retain(|herald| herald.strong_count() > 0);
            here.listeners.retain(|listener| !listener.is_closed());
            if here.heralds.is_empty() && here.listeners.is_empty() {
                lines.remove(line);
            }
        }
    }
}

impl Debug for HoldBoard {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HoldBoard").field("lines", &self.lines.lock().len()).finish()
    }
}

/// Tells of one hold: that it began, and how it ended. Dropped with the hold.
pub(crate) struct Herald {
    board: Arc<HoldBoard>,
    line: String,
    nodes: Vec<Weak<OwnNode>>,
    path: String,
    has_ended: AtomicBool,
    meter: Held,
}

impl Herald {
    /// The hold in `line` that rests on `nodes` was granted.
    pub(crate) fn announce<'a>(
        board: &Arc<HoldBoard>,
        line: String,
        nodes: impl IntoIterator<Item = &'a Arc<OwnNode>>,
        token: FencingToken,
        meter: Held,
    ) -> Arc<Self> {
        let nodes: Vec<&Arc<OwnNode>> = nodes.into_iter().collect();
        let path = nodes.first().map(|node| node.path().to_owned()).unwrap_or_default();
        let herald = Arc::new(Self {
            board: Arc::clone(board),
            line: line.clone(),
            nodes: nodes.iter().map(|node| Arc::downgrade(node)).collect(),
            path: path.clone(),
            has_ended: AtomicBool::new(false),
            meter,
        });
        board.held.fetch_add(1, Ordering::AcqRel);
        board.lines.lock().entry(line.clone()).or_default().heralds.push(Arc::downgrade(&herald));
        board.tell(&line, &HoldEvent::Acquired { path, token });
        for node in nodes {
            let herald = Arc::downgrade(&herald);
            node.on_loss(Box::new(move |lost| {
                if let Some(herald) = herald.upgrade() {
                    herald.end(&HoldEvent::Lost(lost));
                }
            }));
        }
        herald
    }

    fn is_valid(&self) -> bool {
        let stands = |node: &Weak<OwnNode>| node.upgrade().is_some_and(|node| node.check().is_ok());
        !self.has_ended.load(Ordering::Acquire) && self.nodes.iter().all(stands)
    }

    pub(crate) fn meter(&self) -> &Held {
        &self.meter
    }

    fn end(&self, event: &HoldEvent) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.meter.end(match event {
                HoldEvent::Lost(Lost { path, reason }) => {
                    warn!(path, %reason, "lost what was held");
                    Some(*reason)
                }
                _ => None,
            });
            self.board.tell(&self.line, event);
            self.board.ended();
        }
    }
}

impl Drop for Herald {
    fn drop(&mut self) {
        self.end(&HoldEvent::Released { path: self.path.clone() });
        self.board.strike_out(&self.line);
    }
}

impl Debug for Herald {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Herald").field("path", &self.path).finish_non_exhaustive()
    }
}
