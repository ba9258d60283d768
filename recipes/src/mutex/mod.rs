mod guard;
mod handle;
mod inspect;
mod recipe;
mod ticket;

pub use self::guard::MutexGuard;
pub(crate) use self::guard::MutexHold;
pub use self::handle::Mutex;
pub(crate) use self::inspect::of_queue;
pub use self::ticket::MutexTicket;
