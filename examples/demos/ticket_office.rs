//! See `src/ticket_office/mod.rs`.

fn main() -> std::process::ExitCode {
    lockkeeper_demos::ticket_office::main()
}
