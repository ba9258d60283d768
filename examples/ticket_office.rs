//! See `src/ticket_office/mod.rs`.

fn main() -> std::process::ExitCode {
    lockkeeper_examples::ticket_office::main()
}
