//! The owners of holds, and what an owner holds in this process.

mod acquire;
mod chain;
mod error;
mod hand_off_share;
mod owner_slot;
mod registry;
mod side;

use lockkeeper_core::Error;
pub use lockkeeper_lock::Owner;
pub(crate) use lockkeeper_lock::OwnerId;

pub(crate) use self::acquire::{OwnerEntrance, OwnerTicket};
pub use self::error::{NoOwner, WouldDeadlock};
pub(crate) use self::owner_slot::{HoldShare, NextStep, OwnerHolds, SharedHold};
pub(crate) use self::registry::{Holding, OwnerEntry, OwnerRegistry};
pub(crate) use self::side::Side;

/// An owner that no caller can name, so that its acquires are not reentrant.
pub(crate) fn anonymous() -> Owner {
    Owner::new("")
}

/// The data of a node, with the name of the owner in scope.
pub(crate) fn signed(data: &[u8]) -> Vec<u8> {
    Owner::current().map_or_else(|| data.to_vec(), |owner| owner.append_owner(data))
}

/// The owner in scope.
pub(crate) fn in_scope() -> Result<Owner, Error> {
    Owner::current().ok_or_else(|| NoOwner.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_owner_in_scope_is_found_and_none_is_an_error() {
        let owner = Owner::new("a");
        assert_eq!(owner.scope(async { in_scope().unwrap() }).await, owner);
        assert!(in_scope().unwrap_err().recipe::<NoOwner>().is_some());
    }
}
