//! As much of Rust's grammar as it takes to find what a file imports.

/// A path in a source: `crate::queue::Hold` is `["crate", "queue", "Hold"]`.
pub(crate) type Path = Vec<String>;

/// A path that a file names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) path: Path,
    /// The name by which a `use` makes it known in its module.
    pub(crate) imported_as: Option<String>,
}

/// The paths of all `use` declarations outside of tests, and those in the code that begin with `crate`,
/// `super` or `self`.
pub(crate) fn named(source: &str) -> Vec<Named> {
    let tokens = tokens(&without_tests(&without_text(source)));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "use" => at = use_tree(&tokens, at + 1, &[], &mut found),
            "crate" | "super" | "self" => {
                let (path, next) = simple_path(&tokens, at);
                if path.len() > 1 {
                    found.push(Named { path, imported_as: None });
                }
                at = next;
            }
            _ => at += 1,
        }
    }
    found
}

/// Reads `a::b::{c, d as e}` from `at`, behind `before`. Returns where it ends.
fn use_tree(tokens: &[String], at: usize, before: &[String], found: &mut Vec<Named>) -> usize {
    let (path, mut at) = simple_path(tokens, at);
    let path = [before, &path].concat();
    if tokens[at] == "{" {
        at += 1;
        while tokens[at] != "}" {
            at = use_tree(tokens, at, &path, found);
            at += usize::from(tokens[at] == ",");
        }
        return at + 1;
    }
    assert_ne!(tokens[at], "*", "{path:?}: a use of everything hides what is imported");
    let mut imported_as = path.last().cloned();
    if tokens[at] == "as" {
        imported_as = Some(tokens[at + 1].clone());
        at += 2;
    }
    found.push(Named { path, imported_as });
    at
}

/// Reads identifiers with `::` between and, before a group, behind them.
fn simple_path(tokens: &[String], mut at: usize) -> (Path, usize) {
    let mut path = Vec::new();
    while is_identifier(&tokens[at]) && tokens[at] != "as" {
        path.push(tokens[at].clone());
        at += 1;
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    (path, at)
}

pub(crate) fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

pub(crate) fn tokens(source: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_identifier(rest) => {
                rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        found.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    found
}

/// Without the items that are compiled for tests only. rustfmt closes an item in the column where it begins.
pub(crate) fn without_tests(source: &str) -> String {
    let mut kept = String::new();
    let mut rest = source;
    while let Some((before, item)) = rest.split_once("#[cfg(test)]\n") {
        kept.push_str(before);
        let column = item.len() - item.trim_start_matches(' ').len();
        let first_line = item.lines().next().expect("an item");
        let end =
            if first_line.ends_with('{') { format!("\n{}}}\n", " ".repeat(column)) } else { ";".to_owned() };
        rest = item.split_once(&end).expect("the end of an item").1;
    }
    kept + rest
}

/// Without comments, and with empty strings and characters.
pub(crate) fn without_text(source: &str) -> String {
    let mut kept = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            begin + rest[begin..].find(&end).expect("the end of a string") + end.len()
        } else if first == '"' {
            1 + escaped(&rest[1..], '"')
        } else if first == '\'' && is_character(&rest[1..]) {
            1 + escaped(&rest[1..], '\'')
        } else {
            // A whole identifier: the r at the end of `r` or `for` begins no string.
            let word = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            let length = word.max(first.len_utf8());
            kept.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    kept
}

/// How many `#` a raw string has that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let behind = rest.strip_prefix('r')?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    behind[hashes..].starts_with('"').then_some(hashes)
}

/// Whether a quote before this begins a character, and not a lifetime.
fn is_character(rest: &str) -> bool {
    rest.starts_with('\\') || rest.chars().nth(1) == Some('\'')
}

/// How many bytes it is to the end of a text that ends with `quote`.
fn escaped(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = rest.char_indices().find(|(_, c)| {
        let ends = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.expect("the end of a text").0 + 1
}

#[test]
fn every_form_of_a_path_is_found() {
    let source = r##"
//! use crate::comment;
use std::fmt;
pub(crate) use self::a::{B, c::{D as E, F}};
use super::g;
fn h<'a>(of: &'a crate::i::J) -> char {
    // use crate::comment;
    let text = "use crate::text; \" // ";
    let raw = r#"use crate::raw; ""#;
    super::super::k::l(text, raw, '"', '\'');
    self.m();
    crate::n!();
    'x'
}
mod o {
    #[cfg(test)]
    mod tests {
        use super::*;
    }
    use super::q;
}
#[cfg(test)]
mod o_test;
use crate::p;
"##;
    let found: Vec<String> = named(source)
        .into_iter()
        .map(|Named { path, imported_as }| {
            path.join("::") + &imported_as.map_or(String::new(), |name| format!(" as {name}"))
        })
        .collect();
    let expected = [
        "std::fmt as fmt",
        "self::a::B as B",
        "self::a::c::D as E",
        "self::a::c::F as F",
        "super::g as g",
        "crate::i::J",
        "super::super::k::l",
        "crate::n",
        "super::q as q",
        "crate::p as p",
    ];
    assert_eq!(found, expected);
}
