//! Numbers of operations on the wire.

use crate::protocol::Op;

pub(super) const CREATE: i32 = 1;
pub(super) const DELETE: i32 = 2;
pub(super) const GET_DATA: i32 = 4;
pub(super) const SET_DATA: i32 = 5;
pub(super) const GET_CHILDREN: i32 = 8;
pub(super) const CHECK: i32 = 13;
pub(super) const CREATE2: i32 = 15;
pub(super) const CREATE_CONTAINER: i32 = 19;
pub(super) const CREATE_TTL: i32 = 21;
pub(super) const ERROR: i32 = -1;

pub(super) fn op(number: i32) -> Op {
    match number {
        CREATE => Op::Create,
        DELETE => Op::Delete,
        3 => Op::Exists,
        GET_DATA => Op::GetData,
        SET_DATA => Op::SetData,
        6 => Op::GetAcl,
        7 => Op::SetAcl,
        GET_CHILDREN => Op::GetChildren,
        9 => Op::Sync,
        11 => Op::Ping,
        12 => Op::GetChildren2,
        CHECK => Op::Check,
        14 => Op::Multi,
        CREATE2 => Op::Create2,
        16 => Op::Reconfig,
        17 => Op::CheckWatches,
        18 => Op::RemoveWatches,
        CREATE_CONTAINER => Op::CreateContainer,
        CREATE_TTL => Op::CreateTtl,
        22 => Op::MultiRead,
        100 => Op::Auth,
        101 => Op::SetWatches,
        103 => Op::GetEphemerals,
        104 => Op::GetAllChildrenNumber,
        105 => Op::SetWatches2,
        106 => Op::AddWatch,
        107 => Op::WhoAmI,
        -11 => Op::CloseSession,
        _ => Op::Unknown,
    }
}
