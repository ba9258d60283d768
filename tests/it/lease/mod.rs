//! The lease clock with servers that do not know the decisions of the quorum: the guard of a client of such a
//! server turns invalid before the session ends at the leader.

mod cut_off;
mod expiry;
mod fixture;
mod frozen;
mod killed;
mod slack;
