//! An armed fault, as the proxies see it.

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Match, Record};
use crate::wire::Request;

/// The fault for the chosen message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    CutBeforeForward,
    HoldRequest,
    DropReplyAndCut,
    HoldReply,
}

impl Action {
    /// Whether it waits for the reply of the chosen request.
    pub(crate) fn is_on_reply(self) -> bool {
        matches!(self, Self::DropReplyAndCut | Self::HoldReply)
    }

    pub(crate) fn holds(self) -> bool {
        matches!(self, Self::HoldRequest | Self::HoldReply)
    }
}

/// The test's decision about a held message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Release,
    Cut,
}

/// A match, an action, and what has become of them. Strikes once.
#[derive(Debug)]
pub(crate) struct Rule {
    matching: Match,
    action: Action,
    seen: Mutex<usize>,
    struck: watch::Sender<Option<Record>>,
    judgement: watch::Sender<Option<Judgement>>,
}

impl Rule {
    pub(crate) fn new(matching: Match, action: Action) -> Self {
        let (struck, judgement) = (watch::Sender::new(None), watch::Sender::new(None));
        Self { matching, action, seen: Mutex::new(0), struck, judgement }
    }

    pub(crate) fn action(&self) -> Action {
        self.action
    }

    /// Whether this message is the one; counts it if it fits.
    pub(crate) fn chooses(&self, request: &Request, session: i64, server: usize) -> bool {
        if !self.matching.fits(request, session, server) {
            return false;
        }
        let mut seen = self.seen.lock();
        *seen += 1;
        // More, if another rule had this rule's message.
        *seen >= self.matching.position()
    }

    /// The fault has happened: to the proxies' side it is done.
    pub(crate) fn strike(&self, record: Record) {
        self.struck.send_replace(Some(record));
    }

    pub(crate) fn struck(&self) -> watch::Receiver<Option<Record>> {
        self.struck.subscribe()
    }

    pub(crate) fn judge(&self, judgement: Judgement) {
        self.judgement.send_replace(Some(judgement));
    }

    pub(crate) fn release_unless_judged(&self) {
        self.judgement.send_if_modified(|judgement| {
            let undecided = judgement.is_none();
            judgement.get_or_insert(Judgement::Release);
            undecided
        });
    }

    /// Waits for the test's decision.
    pub(crate) async fn judged(&self) -> Judgement {
        let mut judgement = self.judgement.subscribe();
        // Fails only without a sender, which is `self`.
        judgement
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|judged| *judged)
            .unwrap_or(Judgement::Release)
    }
}
