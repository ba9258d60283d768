//! Demonstrations: programs of several processes that prove what a recipe promises, and show what happens
//! without it. `cargo run --example ticket_office` runs one.
//!
//! They kill and pause processes of their own, so they are longer than a program of yours. To copy one
//! recipe, take a file of `examples/`.
//!
//! Most are in one file beside this folder, to be read from the top down. Their common parts are in
//! [`fixture`].

pub mod fixture;
pub mod ticket_office;
