//! Small applications on lockkeeper. Each is run by the example of its name: `cargo run --example ticket_office`.

pub mod ticket_office;
