mod handle;
mod inspect;
mod recipe;
mod ticket;

pub use self::handle::{ReentrantMutex, ReentrantMutexGuard};
pub use self::ticket::ReentrantTicket;
