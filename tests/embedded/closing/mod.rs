//! After the beginning of a shutdown no contender is granted a lock: neither by the server, nor by a holder
//! of the same process.

mod fixture;
mod hand_over;
mod in_flight;
mod ticket;
mod with_manager;
