//! The lease clock against servers that do not know what the quorum decided: a guard there turns invalid before the
//! session ends at the leader.

mod cut_off;
mod expiry;
mod fixture;
mod frozen;
mod killed;
mod slack;
