//! The sharing of nodes among the tasks of a process, in small worlds.

#[path = "../../../recipes/src/sharing/common.rs"]
mod common;
#[path = "../../../recipes/src/sharing/decide.rs"]
mod decide;
#[path = "../../../recipes/src/sharing/hand_off_policy.rs"]
mod hand_off_policy;
#[path = "../../../recipes/src/sharing/known_contenders.rs"]
mod known_contenders;
#[path = "../../../recipes/src/sharing/node_slots.rs"]
mod node_slots;

mod many;
mod one;
mod readers;

use self::hand_off_policy::HandOffPolicy;
