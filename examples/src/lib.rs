//! Small applications on lockkeeper. Each is run by the example of its name: `cargo run --example
//! ticket_office`.
//!
//! Most are in one file beside this folder, to be read from the top down. Their common parts are in
//! [`fixture`].

pub mod fixture;
pub mod ticket_office;
