//! The tasks of a session, which run as long as it does.

use super::connections::LinkChange;
use super::handle::Session;
use crate::error::LossReason;
use crate::wire::Link;

impl Session {
    /// Runs until the session is over, and reports each change of the link to `on_link`.
    pub(crate) async fn run(&self, on_link: impl Fn(Link)) -> LossReason {
        let on_change = |change| match change {
            LinkChange::Down => on_link(Link::Down),
            LinkChange::Replaced => {
                on_link(Link::Down);
                self.lease().forget_silence();
            }
            LinkChange::Up => {
                on_link(Link::Up);
                self.lease().wake_renewal();
            }
        };
        tokio::select! {
            biased;
            reason = self.connections().follow(|| self.now(), on_change) => match reason {
                Some(reason) => reason,
                None => self.ended().await,
            },
            () = self.verify_connections() => LossReason::SessionExpired,
            reason = self.ended() => reason,
            () = self.lease().confirm_while_needed(self) => LossReason::SessionExpired,
            () = self.lease().expire_by_clock(self) => LossReason::SessionExpired,
            () = self.watch_held_nodes() => LossReason::SessionExpired,
        }
    }
}
