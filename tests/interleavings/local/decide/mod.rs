//! The local queue in a small world: a server, and the tasks that drive the queue.

#[path = "../../../../src/local/decide/by_sequence.rs"]
mod by_sequence;
#[path = "../../../../src/local/decide/contender_kind.rs"]
mod contender_kind;
#[path = "../../../../src/local/decide/creates.rs"]
mod creates;
#[path = "../../../../src/local/decide/entry.rs"]
mod entry;
#[path = "../../../../src/local/decide/hand_off.rs"]
mod hand_off;
#[path = "../../../../src/local/decide/in_flight.rs"]
mod in_flight;
#[path = "../../../../src/local/decide/local_queue.rs"]
mod local_queue;
#[path = "../../../../src/local/decide/prediction.rs"]
mod prediction;
#[path = "../../../../src/local/decide/released.rs"]
mod released;
#[path = "../../../../src/local/decide/released_head.rs"]
mod released_head;

mod consistency;
mod exhaustive;
mod leaving;
mod mistakes;
mod random;
mod reduction;
mod scenario;
mod server;
mod shell;
mod world;

use self::by_sequence::Judgement;
use self::contender_kind::ContenderKind;
use self::entry::{EntryKey, NodeId};
use self::hand_off::ReleaseInFlight;
use self::in_flight::CreateInFlight;
use self::local_queue::{Effect, LocalQueue, Wait};
use crate::znode::name::Kind;

/// The kind of the contenders for a mutex.
const LOCK: ContenderKind = ContenderKind::Lock(Kind::LOCK);
