//! `completions`: made from the description of the parser. What only the servers or another program know
//! comes from the texts beside this file.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::output::say_exactly;

/// Behind what clap writes for bash: it replaces the entry by one that asks the servers.
const BASH: &str = include_str!("servers.bash");
/// The same for zsh and for fish.
const ZSH: &str = include_str!("servers.zsh");
const FISH: &str = include_str!("servers.fish");

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    shell: Shell,
}

/// `command` is what the parser was made from.
pub(crate) fn completions(options: &CompletionsOptions, command: Command) -> Result<Exit, Failure> {
    say_exactly(text(options.shell, command).trim_end())?;
    Ok(Exit::SUCCESS)
}

fn text(shell: Shell, mut command: Command) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "lockkeeper", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        Shell::Bash => format!("{text}\n{BASH}"),
        // The name of the function is the entry, which zsh also loads by its name.
        Shell::Zsh => format!("{}\n{ZSH}", text.replace("_lockkeeper", "_lockkeeper_itself")),
        Shell::Fish => format!("{text}\n{FISH}"),
        _ => text,
    }
}
