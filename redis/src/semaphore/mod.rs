mod handle;
mod permits;

pub use self::handle::{Lease, Semaphore};
pub use self::permits::Permits;
