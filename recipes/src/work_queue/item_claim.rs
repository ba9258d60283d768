//! The node that claims an item in the layouts of other clients.

use std::sync::Arc;

use lockkeeper_core::{CreateMode, Epoch, Error, Hold, HoldExt, NamedNode, Txn, ZnodePath};

use super::free_items::FreeItems;
use super::name::ItemName;

/// The version of a claim of ours: it is written once. Other clients do not write theirs, which have the
/// version 0.
const VERSION: i32 = 1;

/// The claim of one item: an ephemeral node with the name of the item. Dropped, it deletes the node in the
/// background: drop the worker before.
pub(super) struct ItemClaim {
    node: NamedNode,
    path: ZnodePath,
    epoch: Epoch,
    item: ItemName,
    free: Arc<FreeItems>,
}

impl ItemClaim {
    /// Reserves the claim, whose transaction is about to be sent. `None` if a claim of this session may be at
    /// the path still.
    pub(super) fn begin(
        hold: &Hold,
        path: ZnodePath,
        item: &ItemName,
        free: &Arc<FreeItems>,
    ) -> Result<Option<Self>, Error> {
        let epoch = hold.epoch();
        if !free.begin_claim(epoch, item) {
            return Ok(None);
        }
        let gone = {
            let (free, item) = (Arc::clone(free), item.clone());
            move || {
                free.end_claim(epoch, &item);
                free.announce();
            }
        };
        let node = hold.named_node(&path, gone).inspect_err(|_| free.end_claim(epoch, item))?;
        let mut claim = Self { node, path, epoch, item: item.clone(), free: Arc::clone(free) };
        claim.set_in_doubt(true);
        Ok(Some(claim))
    }

    /// Creates the claim, unless any client has one.
    pub(super) fn create(&self, txn: Txn<'static>, data: &[u8]) -> Txn<'static> {
        txn.create_with(&self.path, data, CreateMode::Ephemeral).set(&self.path, data, 0)
    }

    /// Deletes the claim. Refused if it is one of another client.
    pub(super) fn delete(&self, txn: Txn<'static>) -> Txn<'static> {
        txn.delete(&self.path, VERSION)
    }

    pub(super) fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Whether a transaction may be applied still that creates the claim, or ends it.
    pub(super) fn set_in_doubt(&mut self, is_in_doubt: bool) {
        self.node.set_in_doubt(is_in_doubt);
    }

    /// The claim was not created, or a transaction has deleted it.
    pub(super) fn ended(self) {
        let Self { node, epoch, item, free, .. } = self;
        node.forget();
        free.end_claim(epoch, &item);
    }
}
