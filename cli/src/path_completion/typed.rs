//! What the words of a command line expect at the cursor: pure.

use clap::{Arg, Command};

/// The arguments that are paths of nodes.
const PATHS: [&str; 3] = ["path", "paths", "root"];

/// The subcommands whose paths may be those of any node, also of a contender.
const OF_NODES: [&str; 2] = ["get", "ls"];

/// The path of a node that is being typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// What is before the path in its word, such as `--root=`.
    pub(super) before: String,
    pub(super) path: String,
    /// Whether the nodes of contenders are meant, too.
    pub(super) any_node: bool,
    /// The flags of the line that say how the servers are reached.
    pub(super) flags: Vec<String>,
}

/// Where the line goes on behind some words.
struct Cursor<'a> {
    command: &'a Command,
    positionals: usize,
    /// The option whose value is the next word.
    value_of: Option<&'a Arg>,
    flags: Vec<String>,
}

impl Typed {
    /// The words are those from the name of the command to the one at the cursor. `None` if that one is no
    /// path.
    pub(super) fn of(command: &Command, words: &[String]) -> Option<Self> {
        let (current, passed) = words.split_last()?;
        let mut cursor = Cursor { command, positionals: 0, value_of: None, flags: Vec::new() };
        for word in passed.iter().skip(1) {
            cursor.pass(word)?;
        }
        let (argument, before, path) = match current.split_once('=') {
            Some((name, value)) if cursor.value_of.is_none() && name.starts_with("--") => {
                (cursor.long(name.trim_start_matches('-'))?, format!("{name}="), value)
            }
            _ if cursor.value_of.is_none() && current.starts_with('-') => return None,
            _ => (cursor.expected()?, String::new(), current.as_str()),
        };
        let path = if path.is_empty() { "/" } else { path };
        let is_path = PATHS.contains(&argument.get_id().as_str()) && path.starts_with('/');
        is_path.then(|| Self {
            before,
            path: path.to_owned(),
            any_node: OF_NODES.contains(&cursor.command.get_name()),
            flags: cursor.flags,
        })
    }
}

impl<'a> Cursor<'a> {
    /// Behind one word more. `None` behind `--`: there the program begins.
    fn pass(&mut self, word: &str) -> Option<()> {
        if let Some(argument) = self.value_of.take() {
            self.keep(argument, word);
        } else if word == "--" {
            return None;
        } else if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, value)) => {
                    if let Some(argument) = self.long(name) {
                        self.keep(argument, value);
                    }
                }
                None => self.value_of = self.long(long).filter(|of| takes_value(of)),
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let valued = letters.char_indices().find_map(|(at, letter)| {
                let argument = self.command.get_arguments().find(|of| of.get_short() == Some(letter))?;
                takes_value(argument).then_some((at + letter.len_utf8(), argument))
            });
            // The value may follow without a space.
            self.value_of = valued.filter(|(end, _)| *end == letters.len()).map(|(_, argument)| argument);
        } else if let Some(subcommand) = self.command.find_subcommand(word) {
            self.command = subcommand;
        } else {
            self.positionals += 1;
        }
        Some(())
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|of| of.get_long() == Some(name))
    }

    /// Keeps what says how the servers are reached.
    fn keep(&mut self, argument: &Arg, value: &str) {
        if argument.get_help_heading() == Some("Connection")
            && let Some(long) = argument.get_long()
        {
            self.flags.push(format!("--{long}={value}"));
        }
    }

    /// The argument at the cursor.
    fn expected(&self) -> Option<&'a Arg> {
        if self.value_of.is_some() {
            return self.value_of;
        }
        let mut passed = self.positionals;
        self.command.get_positionals().filter(|of| !of.is_last_set()).find(|of| {
            let is_it = passed == 0 || of.get_num_args().is_some_and(|count| count.max_values() > 1);
            passed = passed.saturating_sub(1);
            is_it
        })
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::options::Options;

    fn typed(line: &str) -> Option<Typed> {
        let mut command = Options::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Typed::of(&command, &words)
    }

    #[test]
    fn the_path_at_the_cursor_is_found_and_what_is_no_path_of_a_node_is_none() {
        for (line, expected) in [
            ("lockkeeper lock /a/b", Some("/a/b")),
            ("lockkeeper lock ", Some("/")),
            ("lockkeeper -v --connect a:1 inspect /a /b", Some("/b")),
            ("lockkeeper multi /a /b /c", Some("/c")),
            ("lockkeeper semaphore -n 3 /a", Some("/a")),
            ("lockkeeper semaphore -n3 /a", Some("/a")),
            ("lockkeeper lock --timeout 5 -qE 0 /a", Some("/a")),
            ("lockkeeper doctor --root /a", Some("/a")),
            ("lockkeeper doctor --root=/a", Some("/a")),
            ("lockkeeper queue list /a", Some("/a")),
            ("lockkeeper queue requeue /a ", None),
            ("lockkeeper lock /a /b", None),
            ("lockkeeper lock /a -- /b", None),
            ("lockkeeper lock --config /etc", None),
            ("lockkeeper check / --textfile /var", None),
            ("lockkeeper man /usr", None),
            ("lockkeeper lock --o", None),
            ("lockkeeper lock a", None),
            ("lockkeeper ", None),
            ("lockkeeper", None),
        ] {
            let found = typed(line).map(|typed| typed.path);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn the_flags_of_the_connection_are_kept_and_others_are_not() {
        let line = "lockkeeper --connect a:1/b inspect --auth=x:y -o json --interval 3 --root=/c /d";
        assert_eq!(typed(line).unwrap().flags, ["--connect=a:1/b", "--auth=x:y"]);
        assert_eq!(typed("lockkeeper doctor --root=/a").unwrap().before, "--root=");
        assert!(
            typed("lockkeeper ls /a").unwrap().any_node && !typed("lockkeeper wait /a").unwrap().any_node
        );
    }
}
