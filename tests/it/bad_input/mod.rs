//! What cannot be right: arguments, what others left in ZooKeeper, and what a server says.

mod arguments;
mod lies;
mod strangers;
