//! `completions` and `man`: made from the same description as the parser.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::output::say_exactly;

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The folder that gets one page for each subcommand; it must exist
    folder: PathBuf,
}

/// `command` is what the parser was made from.
pub(crate) fn completions(options: &CompletionsOptions, mut command: Command) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut command, "lockkeeper", &mut text);
    say_exactly(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::SUCCESS)
}

/// `command` is what the parser was made from.
pub(crate) fn man(options: &ManOptions, command: Command) -> Result<Exit, Failure> {
    clap_mangen::generate_to(command, &options.folder)?;
    Ok(Exit::SUCCESS)
}
