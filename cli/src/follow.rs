//! Waits until nodes below some paths change.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{SelectAll, select_all};
use lockkeeper::view::ViewChanges;
use lockkeeper::{ConnectionManager, Error, TreeView, ZnodePath};

/// The pause before the next look at a path whose contender the connection's server does not know yet.
const BEHIND: Duration = Duration::from_millis(100);

/// Views of some paths: each change is a hint to look again.
#[derive(Debug)]
pub(crate) struct Follow {
    views: Vec<TreeView>,
    changes: SelectAll<ViewChanges>,
}

impl Follow {
    pub(crate) fn paths(manager: &ConnectionManager, paths: &[ZnodePath]) -> Result<Self, Error> {
        let views: Vec<TreeView> =
            paths.iter().map(|path| TreeView::new(manager, path)).collect::<Result<_, _>>()?;
        let changes = select_all(views.iter().map(TreeView::changes));
        Ok(Self { views, changes })
    }

    /// Returns after a change since the call before, and after `limit` at the latest: not every change of a
    /// contender is one of its node, and a path may be one that no view can follow. `is_free` says of each
    /// path whether the last look found no contender there.
    ///
    /// Cancel safe: no change is lost.
    pub(crate) async fn changed(&mut self, limit: Duration, is_free: impl Fn(usize) -> bool) {
        let is_behind = |(at, view): (usize, &TreeView)| is_free(at) && has_session_node(view);
        let limit = if self.views.iter().enumerate().any(is_behind) { limit.min(BEHIND) } else { limit };
        let change = async {
            if self.changes.next().await.is_none() {
                // Every view has ended.
                std::future::pending::<()>().await;
            }
        };
        // Without a change in time, too, it is time to look.
        let _ = tokio::time::timeout(limit, change).await;
    }
}

/// The view has a session of its own, and so possibly another server, which has seen more.
fn has_session_node(view: &TreeView) -> bool {
    view.snapshot().iter().any(|(_, node)| node.stat().ephemeral_owner != 0)
}
