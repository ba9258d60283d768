//! Once a shutdown has begun nobody is granted a lock: neither by the server, nor by a holder of the same process.

mod hand_over;
mod in_flight;
mod scene;
mod ticket;
