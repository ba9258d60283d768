//! Files of the core, compiled with loom's locks and flags, and the models that use them.
//!
//! Loom runs a model once for each way in which its threads can interleave, and for each value that the
//! memory model lets a load return.

pub mod models;
mod sync;

#[path = "../../src/session/loss_notice.rs"]
mod loss_notice;
#[path = "../../src/session/node_flags.rs"]
#[expect(dead_code, reason = "a model needs less than the session")]
mod node_flags;
#[path = "../../src/session/node_register.rs"]
mod node_register;
#[path = "../../src/session/parker.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "a model needs less than the session"))]
mod parker;
#[path = "../../src/shared_future.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "a model needs less than the session"))]
mod shared_future;
#[path = "../../src/session/watches/watch_budget.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "a model needs less than the session"))]
mod watch_budget;
