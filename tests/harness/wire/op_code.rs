//! The kinds of request.

/// The operation of a request (`ZooDefs.OpCode`), and the two messages that are no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named as in ZooKeeper")]
pub enum OpCode {
    /// The first message of a connection: it asks for a new session, or for one to be attached again.
    Connect,
    /// Not a request: a watch event, which the server sends unasked.
    Event,
    Create,
    Delete,
    Exists,
    GetData,
    SetData,
    GetAcl,
    SetAcl,
    GetChildren,
    Sync,
    Ping,
    GetChildren2,
    Check,
    Multi,
    Create2,
    Reconfig,
    CheckWatches,
    RemoveWatches,
    CreateContainer,
    CreateTtl,
    MultiRead,
    Auth,
    SetWatches,
    Sasl,
    GetEphemerals,
    GetAllChildrenNumber,
    SetWatches2,
    AddWatch,
    WhoAmI,
    CloseSession,
    /// One that the harness does not know.
    Other(i32),
}

/// Numbers on the wire; [`OpCode::Connect`] has none.
const NUMBERS: [(OpCode, i32); 30] = [
    (OpCode::Event, 0),
    (OpCode::Create, 1),
    (OpCode::Delete, 2),
    (OpCode::Exists, 3),
    (OpCode::GetData, 4),
    (OpCode::SetData, 5),
    (OpCode::GetAcl, 6),
    (OpCode::SetAcl, 7),
    (OpCode::GetChildren, 8),
    (OpCode::Sync, 9),
    (OpCode::Ping, 11),
    (OpCode::GetChildren2, 12),
    (OpCode::Check, 13),
    (OpCode::Multi, 14),
    (OpCode::Create2, 15),
    (OpCode::Reconfig, 16),
    (OpCode::CheckWatches, 17),
    (OpCode::RemoveWatches, 18),
    (OpCode::CreateContainer, 19),
    (OpCode::CreateTtl, 21),
    (OpCode::MultiRead, 22),
    (OpCode::Auth, 100),
    (OpCode::SetWatches, 101),
    (OpCode::Sasl, 102),
    (OpCode::GetEphemerals, 103),
    (OpCode::GetAllChildrenNumber, 104),
    (OpCode::SetWatches2, 105),
    (OpCode::AddWatch, 106),
    (OpCode::WhoAmI, 107),
    (OpCode::CloseSession, -11),
];

impl OpCode {
    pub(crate) fn from_wire(number: i32) -> Self {
        NUMBERS.iter().find(|(_, known)| *known == number).map_or(Self::Other(number), |(op, _)| *op)
    }

    pub(crate) fn to_wire(self) -> i32 {
        match self {
            Self::Other(number) => number,
            op => NUMBERS.iter().find(|(known, _)| *known == op).map_or(0, |(_, number)| *number),
        }
    }

    /// Whether the request's body begins with its path.
    pub(crate) fn has_path(self) -> bool {
        use OpCode::{
            AddWatch, Check, CheckWatches, Create, Create2, CreateContainer, CreateTtl, Delete, Exists,
            GetAcl, GetAllChildrenNumber, GetChildren, GetChildren2, GetData, GetEphemerals, RemoveWatches,
            SetAcl, SetData, Sync,
        };
        matches!(
            self,
            AddWatch
                | Check
                | CheckWatches
                | Create
                | Create2
                | CreateContainer
                | CreateTtl
                | Delete
                | Exists
                | GetAcl
                | GetAllChildrenNumber
                | GetChildren
                | GetChildren2
                | GetData
                | GetEphemerals
                | RemoveWatches
                | SetAcl
                | SetData
                | Sync
        )
    }
}
