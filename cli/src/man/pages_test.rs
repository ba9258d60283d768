//! Every page has its sections, and every example is right.

use clap::{Command, CommandFactory, Parser};

use super::sections::name;
use super::{examples, page};
use crate::options::Options;

fn built() -> Command {
    let mut command = Options::command().disable_help_subcommand(true);
    command.build();
    command
}

/// All pages, by name.
fn pages(whole: &Command, command: &Command, all: &mut Vec<(String, String)>) {
    for subcommand in command.get_subcommands() {
        pages(whole, subcommand, all);
    }
    let text = String::from_utf8(page(whole, command).unwrap()).unwrap();
    all.push((name(command).to_owned(), text));
}

#[test]
fn every_page_says_the_codes_the_environment_the_files_an_example_and_where_to_go_on() {
    let (whole, mut all) = (built(), Vec::new());
    pages(&whole, &whole, &mut all);
    assert!(all.len() > 20, "{}", all.len());
    for (name, text) in &all {
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
            assert_eq!(
                text.matches(&format!(".SH \"{section}\"")).count()
                    + text.matches(&format!(".SH {section}\n")).count(),
                1,
                "{section} of {name}:\n{text}"
            );
        }
        let runs = ["lock", "read", "write", "semaphore", "multi", "elect", "once"];
        let is_run = runs.iter().any(|run| *name == format!("lockkeeper-{run}"));
        assert_eq!(text.contains("LOCKKEEPER_TOKEN\\fR"), is_run, "{name}");
        assert_eq!(text.contains("\n\\fB\\-\\-\\fR\n"), is_run, "{name}:\n{text}");
    }
}

#[test]
fn every_example_is_a_command_line_that_the_parser_takes() {
    let (whole, mut count) = (built(), 0);
    let mut left = vec![&whole];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands());
        for (line, _) in examples::of(name(command)) {
            count += 1;
            let line = line.split(" | ").next().unwrap().split(" > ").next().unwrap();
            let words = line.split_whitespace().skip_while(|word| *word != "lockkeeper");
            let parsed = Options::try_parse_from(words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
    assert!(count > 25, "{count}");
}
