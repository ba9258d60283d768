//! Bad input: invalid arguments, foreign nodes in ZooKeeper, and false answers of a server.

mod arguments;
mod foreign;
mod lies;
