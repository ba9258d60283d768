//! Files and functions that are read at one sitting, and lines that fit on the screen.

use super::{files, read};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_WIDTH_MAX: usize = 110;

fn sources_in(folders: &[&str]) -> Vec<(String, String)> {
    let files = folders.iter().flat_map(|folder| files(folder, &[".rs"]));
    files.map(|file| (file.clone(), read(&file))).collect()
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let sources = sources_in(&["."]);
    assert!(sources.len() > 1_000, "only {} files were found", sources.len());
    let lengths = sources.into_iter().map(|(file, text)| (file, text.lines().count()));
    let too_long: Vec<(String, usize)> = lengths.filter(|(_, lines)| *lines > FILE_LINES_MAX).collect();
    assert!(too_long.is_empty(), "split by meaning: {too_long:#?}");
}

#[test]
fn no_function_is_longer_than_70_lines() {
    let functions: Vec<(String, usize)> = sources_in(&["."])
        .into_iter()
        .flat_map(|(file, text)| {
            let of_file = functions_of(&text).into_iter();
            of_file.map(|(name, lines)| (format!("{file}: {name}"), lines)).collect::<Vec<_>>()
        })
        .collect();
    assert!(functions.len() > 5_000, "only {} functions were found", functions.len());
    let too_long: Vec<_> = functions.into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX).collect();
    assert!(too_long.is_empty(), "split by meaning: {too_long:#?}");
}

#[test]
fn no_line_is_wider_than_110_columns() {
    // rustfmt does not break a long string, so it is broken by hand. A table or a command in a comment cannot
    // be broken.
    let may_be_wide = |line: &str| {
        let text = line.trim_start().trim_start_matches(['/', '!']);
        line.trim_start().starts_with("//") && (text.starts_with(" |") || text.starts_with(" cargo "))
    };
    let mut too_wide = Vec::new();
    for (file, text) in sources_in(&["."]) {
        let is_too_wide = |line: &str| line.chars().count() > LINE_WIDTH_MAX && !may_be_wide(line);
        let lines = (1..).zip(text.lines()).filter(|(_, line)| is_too_wide(line));
        too_wide.extend(lines.map(|(number, _)| format!("{file}:{number}")));
    }
    assert!(too_wide.is_empty(), "{too_wide:#?}");
}

/// The names of all functions with a body, and how many lines each has from `fn` on. rustfmt ends a body in
/// the column where the function begins.
fn functions_of(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, name)) = code.split_once("fn ") else { continue };
        let is_declared = before.split(' ').all(|word| {
            matches!(word, "" | "pub" | "const" | "async" | "unsafe" | "extern") || word.starts_with("pub(")
        });
        if !is_declared {
            continue;
        }
        let name = name.split(['(', '<']).next().unwrap();
        let column = line.len() - code.len();
        let has_ended = |line: &&str| line.len() - line.trim_start().len() == column;
        let closes = |line: &&str| line.ends_with('}') || line.ends_with(';');
        let lines = lines[begin..].iter().position(|line| has_ended(line) && closes(line));
        found.push((name, lines.unwrap_or_else(|| panic!("{name} has no end")) + 1));
    }
    found
}

#[test]
fn the_lines_of_a_function_are_counted() {
    let text = "
fn one() {}
impl Of {
    pub(crate) async fn four(
        &self,
    ) {
    }
    fn declared(&self);
    const fn five<T>(text: &str) -> T
    where
        T: From<str>,
    {
        text.into()
    }
}
";
    assert_eq!(functions_of(text), [("one", 1), ("four", 4), ("declared", 1), ("five", 6)]);
}
