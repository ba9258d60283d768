//! Small applications on lockkeeper. Each is run by the example of its name: `cargo run --example ticket_office`.
//!
//! Most stand in one file beside this folder, read from the top down. What they share is in [`fixture`].

pub mod fixture;
pub mod ticket_office;
