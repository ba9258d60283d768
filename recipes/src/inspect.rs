//! What is known of a lock, a group or a register at a moment: holders, waiters, members, and which
//! contender waits for which.
//!
//! Nothing here changes a node, and nothing here is a promise: the next moment may differ.

#[doc(inline)]
pub use crate::barrier::BarrierInspection;
#[doc(inline)]
pub use crate::deadlock::{Certainty, Deadlock, Deadlocks, WaitEdge};
#[cfg(feature = "discovery")]
#[doc(inline)]
pub use crate::discovery::{DiscoveryInspection, InstanceInspection, ServiceInspection};
#[doc(inline)]
pub use crate::double_barrier::DoubleBarrierInspection;
#[doc(inline)]
pub use crate::group::{GroupInspection, MemberInspection};
#[doc(inline)]
pub use crate::inspection::WindowInfo;
#[doc(inline)]
pub use crate::partition::{PartitionInspection, PartitionItem};
#[doc(inline)]
pub use crate::schedule::ScheduleInspection;
#[doc(inline)]
pub use crate::survey::{Survey, SurveyGroup, SurveyQueue};
#[doc(inline)]
pub use crate::work_queue::{FailedItem, ItemInfo, ItemState, WorkQueueInspection};
#[doc(inline)]
pub use lockkeeper_core::{AgeClock, ContenderInfo, HeldHere, Identity, Kind, NodeInfo, RegisterInfo, Role};
