//! `completions` and `man`: made from the same description as the parser.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::options::Options;
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

pub(crate) fn completions(options: &CompletionsOptions) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Options::command(), "lockkeeper", &mut text);
    say_exactly(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::SUCCESS)
}

pub(crate) fn man(options: &ManOptions) -> Result<Exit, Failure> {
    clap_mangen::generate_to(Options::command(), &options.folder)?;
    Ok(Exit::SUCCESS)
}
