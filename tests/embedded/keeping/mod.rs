//! A mutex that hands its node off within its process: the order of its tasks, when the node is deleted, and
//! which holds are never handed off.

mod ending;
mod fixture;
mod idle_time;
mod passing;
