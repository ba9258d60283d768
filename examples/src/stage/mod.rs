//! What the examples share: a server, processes of the same program, and an orderly end.
//!
//! An [`Example`] has two sides. The first process *leads*: it sets the scene on a [`Stage`], starts processes of the
//! same program, and judges what came of it. The others *work*: each is a [`Worker`] with a session of its own. They end
//! when the first one does, however that comes about.

mod connection;
mod example;
mod failure;
mod interrupt;
mod options;
mod patience;
mod process;
mod server;
mod setting;
mod sweep;
mod verdict;
mod worker;

pub use self::connection::Connection;
pub use self::example::{Example, block_on, play};
pub use self::failure::{Failure, TROUBLE, USAGE};
pub use self::interrupt::{GRACE, Interrupt, Interrupted};
pub use self::options::Common;
pub use self::patience::{PAUSE, Passing, patiently};
pub use self::process::{News, Process};
pub use self::server::{Server, ServerError};
pub use self::setting::Stage;
pub use self::sweep::sweep;
pub use self::verdict::Verdict;
pub use self::worker::Worker;
