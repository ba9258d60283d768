/// The kind of a request, for choosing requests by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// The first message of a connection.
    Connect,
    /// `create`.
    Create,
    /// `create2`.
    Create2,
    /// `createContainer`.
    CreateContainer,
    /// `createTTL`.
    CreateTtl,
    /// `delete`.
    Delete,
    /// `exists`.
    Exists,
    /// `getData`.
    GetData,
    /// `setData`.
    SetData,
    /// `getACL`.
    GetAcl,
    /// `setACL`.
    SetAcl,
    /// `getChildren`.
    GetChildren,
    /// `getChildren2`.
    GetChildren2,
    /// `sync`.
    Sync,
    /// `ping`.
    Ping,
    /// `check`.
    Check,
    /// `multi`.
    Multi,
    /// `multiRead`.
    MultiRead,
    /// `auth`.
    Auth,
    /// `setWatches`.
    SetWatches,
    /// `setWatches2`.
    SetWatches2,
    /// `addWatch`.
    AddWatch,
    /// `removeWatches`.
    RemoveWatches,
    /// `checkWatches`.
    CheckWatches,
    /// `getEphemerals`.
    GetEphemerals,
    /// `getAllChildrenNumber`.
    GetAllChildrenNumber,
    /// `whoAmI`.
    WhoAmI,
    /// `closeSession`.
    CloseSession,
    /// `reconfig`, which is always refused.
    Reconfig,
    /// A number no operation has, or bytes that could not be decoded.
    Unknown,
}

impl Op {
    /// Whether it makes a node by itself. (A `multi` may too.)
    pub fn is_create(self) -> bool {
        matches!(self, Self::Create | Self::Create2 | Self::CreateContainer | Self::CreateTtl)
    }
}
