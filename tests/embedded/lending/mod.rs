//! Permits that a process hands off among its tasks: their order, when the nodes are deleted, and which
//! permits are never handed off.

mod ending;
mod fixture;
mod idle_time;
mod others;
mod passing;
