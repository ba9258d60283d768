//! `man`: the manual pages, made from the same description as the parser, with sections that it does not
//! have.

mod examples;
#[cfg(test)]
mod pages_test;
mod sections;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::Roff;

use self::sections::name;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The folder that gets one page for each subcommand; it must exist
    folder: PathBuf,
}

/// `command` is what the parser was made from.
pub(crate) fn man(options: &ManOptions, command: Command) -> Result<Exit, Failure> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write(&command, &command, &options.folder).map_err(|error| {
        Failure::new(Exit::INTERNAL, format!("{} cannot be written: {error}", options.folder.display()))
    })?;
    Ok(Exit::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn write(whole: &Command, command: &Command, folder: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands() {
        write(whole, subcommand, folder)?;
    }
    let file = folder.join(format!("{}.1", name(command)));
    fs::write(file, page(whole, command)?)
}

fn page(whole: &Command, command: &Command) -> io::Result<Vec<u8>> {
    let version = format!("lockkeeper {}", whole.get_version().unwrap_or_default());
    let man = Man::new(command.clone()).source(version).manual("lockkeeper");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut more = Roff::new();
    sections::add(&mut more, whole, command);
    more.to_writer(&mut text)?;
    Ok(text)
}
