//! Prints the guards of Rust files, one a line, for `tests/mutants/guards`.

use std::process::ExitCode;

use lockkeeper_guards::{Found, guards};

fn main() -> ExitCode {
    for file in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => return failed(&file, &error),
        };
        match guards(&text) {
            Ok(found) => print(&file, &found),
            Err(error) => return failed(&file, &error),
        }
    }
    ExitCode::SUCCESS
}

fn failed(file: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("guards: {file}: {error}");
    ExitCode::FAILURE
}

/// Fields between tabs: no file, function or word has one.
fn print(file: &str, found: &Found) {
    for guard in &found.guards {
        let (start, end) = (guard.span.start, guard.span.end);
        println!("guard\t{file}\t{start}\t{end}\t{}\t{}", guard.becomes, guard.function);
    }
    for module in &found.test_modules {
        println!("tests\t{file}\t{module}");
    }
    println!("left out\t{file}\t{}\t{}", found.in_const, found.in_macros);
}
