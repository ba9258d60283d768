//! Inspections of locks, and queue tickets.

mod seen;
mod tickets;
