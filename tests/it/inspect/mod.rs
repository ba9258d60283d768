//! Looking at locks from outside, and standing in their lines without waiting.

mod seen;
mod tickets;
