//! What the tests on Redis need: servers, the links to them, a witness of what is held, and Python.

mod proxy;
mod python;
mod server;
mod witness;

pub use self::proxy::{Fault, Proxy};
pub use self::python::python;
pub use self::server::{RedisServer, left_out};
pub use self::witness::{Observations, Witness};

/// Why a test cannot continue.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
