//! From a match to a fault.

use std::sync::Arc;

use super::rule::{Action, Rule};
use super::tap::Tap;
use super::{Fault, Hold, Match};

/// A chosen message, before it is said what happens to it. Made by [`Proxies::on`](super::Proxies::on).
#[derive(Debug)]
#[must_use = "nothing is armed before a fault is chosen"]
pub struct Arming<'a> {
    tap: &'a Tap,
    matching: Match,
}

impl<'a> Arming<'a> {
    pub(crate) fn new(tap: &'a Tap, matching: Match) -> Self {
        Self { tap, matching }
    }

    /// The request never reaches the server, and its connection is cut. Requests before it do reach the
    /// server.
    pub fn cut_before_forward(self) -> Fault {
        Fault::new(self.arm(Action::CutBeforeForward))
    }

    /// The server has done what was asked; the client never sees the reply, and its connection is cut.
    /// Replies before it do reach the client.
    ///
    /// For a watch event: the client never sees the event.
    pub fn drop_reply_and_cut(self) -> Fault {
        Fault::new(self.arm(Action::DropReplyAndCut))
    }

    /// The request, and those behind it on its connection, stay in the proxy until the handle says what to
    /// do.
    pub fn hold_request(self) -> Hold {
        Hold::new(self.arm(Action::HoldRequest))
    }

    /// The reply (or watch event), and all later messages on its connection, pings included, stay in the
    /// proxy until the handle says what to do. Requests pass.
    pub fn hold_reply(self) -> Hold {
        Hold::new(self.arm(Action::HoldReply))
    }

    fn arm(self, action: Action) -> Arc<Rule> {
        let rule = Arc::new(Rule::new(self.matching, action));
        self.tap.arm(Arc::clone(&rule));
        rule
    }
}
