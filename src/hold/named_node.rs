//! An ephemeral node with a chosen name, which transactions of a hold create and delete.

use std::fmt::{self, Debug, Formatter};

use super::held::Hold;
use crate::error::Error;
use crate::session::{Session, janitor};
use crate::znode::path::ZnodePath;

/// The ephemeral node at a path, which a transaction of a [`Hold`] creates. Other sessions may create a node
/// at the same path, and none of theirs is deleted.
///
/// Dropped, it deletes the node in the background, if the session of the hold owns it. As long as a
/// transaction that may create the node is [in doubt](Self::set_in_doubt), the node of the hold is deleted
/// first: a transaction that is applied after that creates nothing. So drop the hold before.
///
/// One session has at most one of these for a path: make the next one when the last one is
/// [gone](crate::HoldExt::named_node).
#[must_use = "a node that is not kept is deleted at once"]
#[clippy::has_significant_drop]
pub struct NamedNode {
    session: Session,
    /// With the chroot.
    path: String,
    /// The node of the hold.
    rests_on: String,
    is_in_doubt: bool,
    /// `None` once the node needs no delete.
    gone: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Hold {
    pub(crate) fn named_node(
        &self,
        path: &ZnodePath,
        gone: impl FnOnce() + Send + Sync + 'static,
    ) -> Result<NamedNode, Error> {
        Ok(NamedNode {
            session: self.session().clone(),
            path: self.manager.full_path(path)?.to_string(),
            rests_on: self.full_path().to_owned(),
            is_in_doubt: false,
            gone: Some(Box::new(gone)),
        })
    }
}

impl NamedNode {
    /// Records whether a transaction that creates the node may be applied still.
    pub fn set_in_doubt(&mut self, is_in_doubt: bool) {
        self.is_in_doubt = is_in_doubt;
    }

    /// Records that no transaction has created the node, and none will; or that one has deleted it.
    pub fn forget(mut self) {
        self.gone = None;
    }
}

impl Drop for NamedNode {
    fn drop(&mut self) {
        let Some(gone) = self.gone.take() else { return };
        if self.session.loss().is_some() {
            return gone();
        }
        let rests_on = self.is_in_doubt.then_some(self.rests_on.as_str());
        janitor::delete_named(&self.session, &self.path, rests_on, gone);
    }
}

impl Debug for NamedNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NamedNode").field("path", &self.path).finish_non_exhaustive()
    }
}
