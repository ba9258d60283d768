//! Tests of the test server, over real sockets.

mod debian;
mod differential;
mod raw;
mod script;
