mod guard;
mod hand_off_policy;
mod handle;
mod inspect;
mod recipe;
mod sharing;
mod ticket;

pub use self::guard::MutexGuard;
pub(crate) use self::guard::MutexHold;
pub use self::hand_off_policy::HandOffPolicy;
pub use self::handle::Mutex;
pub(crate) use self::inspect::of_queue;
pub use self::ticket::MutexTicket;
