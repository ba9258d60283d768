//! The server as a pure state machine: no sockets, no threads, no clock.
//!
//! [`Machine`] takes what happens — a connection, a request, time passing — together with the time it happens
//! at, and answers with [`Output`]s in the order in which they leave the server. That order is the protocol's
//! promise: an event always precedes the reply that shows the change. The same calls at the same times give
//! the same outputs, so a simulation can run on it with a seed.
//!
//! ```
//! use lockkeeper_testserver::machine::{Machine, Output, Settings};
//! use lockkeeper_testserver::protocol::{ConnectRequest, Reply, Request};
//!
//! let mut machine = Machine::new(Settings::default(), 0);
//! let client = machine.open(0, "127.0.0.1");
//! let answer = machine.connect(client, ConnectRequest { timeout: 5000, ..Default::default() }, 0);
//! assert!(matches!(answer.as_slice(), [Output::Connected { response, .. }] if response.timeout == 5000));
//!
//! let answer = machine.request(client, 1, Request::Exists { path: "/".into(), watch: false }, 10);
//! assert!(matches!(answer.as_slice(), [Output::Reply { xid: 1, result: Ok(Reply::Stat(_)), .. }]));
//! ```

mod attach;
mod client;
mod isolate;
#[expect(clippy::module_inception, reason = "the machine is the main type of the machine module")]
mod machine;
mod mode;
mod outage;
mod output;
mod prepare;
mod read;
mod replica;
mod serve;
mod sessions;
mod settings;
mod time;
mod write;

pub use client::ClientId;
pub use machine::Machine;
pub use mode::Mode;
pub use output::Output;
pub use replica::Isolation;
pub use settings::Settings;
pub use write::Origin;
