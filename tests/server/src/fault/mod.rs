//! Faults on order: [`When`] says which request, reply or event, [`Fault`] says what becomes of it, and the
//! [`ArmedFault`] that [`TestServer::fault`](crate::TestServer::fault) hands back says when it happened.
//!
//! A [`Transcript`] says what passes, so that a test can find out which requests there are before it strikes
//! at them.
//!
//! Nothing here is random. A fault hits the n-th match of its rule and no other, and a test waits for the hit
//! instead of sleeping.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use lockkeeper_testserver::{Fault, TestServer, When};
//!
//! let server = TestServer::start().await?;
//! let lost = server.fault(When::create().path("/locks/**"), Fault::DropConnectionAfter);
//! // ... the client under test creates a node below /locks ...
//! lost.hit().await;
//! # Ok(())
//! # }
//! ```

mod armed;
#[expect(clippy::module_inception, reason = "the fault is the main type of the fault module")]
mod fault;
mod gate;
mod occasion;
mod switchboard;
mod transcript;
mod when;

pub use armed::ArmedFault;
pub use fault::Fault;
pub(crate) use gate::Gate;
pub use occasion::{Occasion, Subject};
pub(crate) use switchboard::{Strike, Switchboard};
pub use transcript::{Passed, Transcript};
pub use when::When;
