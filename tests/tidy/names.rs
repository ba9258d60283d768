//! One name for one type, and names of questions for questions alone.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::{is_identifier, tokens, without_tests, without_text};
use super::{files, read};

/// Types of the libraries whose name another type has as well: the name, and why both have it.
const TWINS: &[(&str, &str)] = &[
    ("View", "the typed view of the recipes, and the view of the core that it wraps"),
    ("Watch", "a state that a program follows, and the watch of a node on the wire"),
];

/// The sources of the libraries. The blocking face has the names of the types that it wraps, by design.
pub(super) fn library_sources() -> impl Iterator<Item = (String, Vec<String>)> {
    let files = ["src", "recipes/src", "lock/src"].into_iter().flat_map(|folder| files(folder, &[".rs"]));
    let is_for_tests = |file: &String| {
        ["test.rs", "tests.rs", "exploration.rs"].iter().any(|end| file.ends_with(end))
            || file.contains("/tests/")
    };
    let files = files.filter(move |file| !is_for_tests(file) && !file.starts_with("recipes/src/blocking/"));
    files.map(|file| {
        let code = tokens(&without_tests(&without_text(&read(&file))));
        (file, code)
    })
}

#[test]
fn no_two_types_of_the_libraries_have_one_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, code) in library_sources() {
        for name in types_of(&code) {
            places.entry(name).or_default().insert(file.clone());
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    let is_listed = |name: &str| TWINS.iter().any(|(twin, _)| *twin == name);
    let double: Vec<_> = places.iter().filter(|(name, files)| files.len() > 1 && !is_listed(name)).collect();
    assert!(double.is_empty(), "rename all but one: {double:#?}");
    let is_single = |(name, _): &&(&str, &str)| places.get(*name).is_none_or(|files| files.len() < 2);
    let single: Vec<_> = TWINS.iter().filter(is_single).collect();
    assert!(single.is_empty(), "the list names types that have no twin: {single:#?}");
    assert!(TWINS.is_sorted(), "the list is not in order");
}

#[test]
fn questions_have_an_answer_and_change_nothing() {
    let mut questions = 0;
    let mut wrong = Vec::new();
    for file in files(".", &[".rs"]) {
        for (name, is_question) in questions_of(&tokens(&without_text(&read(&file)))) {
            questions += 1;
            if !is_question {
                wrong.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(questions > 200, "only {questions} functions were found");
    assert!(wrong.is_empty(), "is_ and has_ are for questions; name these after what they do: {wrong:#?}");
}

/// The names of the structs, enums, traits and type aliases, without the associated types.
fn types_of(code: &[String]) -> Vec<String> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for pair in code.windows(2) {
        match pair[0].as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "struct" | "enum" | "trait" => found.push(pair[1].clone()),
            // Within braces it belongs to a trait or to its implementation.
            "type" if depth == 0 => found.push(pair[1].clone()),
            _ => {}
        }
    }
    found.retain(|name| is_identifier(name));
    found
}

/// The functions with the name of a question, and whether each returns something and leaves `self` as it is.
fn questions_of(code: &[String]) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (at, pair) in code.windows(2).enumerate() {
        let name = &pair[1];
        if pair[0] != "fn" || !(name.starts_with("is_") || name.starts_with("has_")) {
            continue;
        }
        let rest = &code[at + 2..];
        // A semicolon within brackets is that of an array's length.
        let mut depth = 0_i32;
        let ends = |token: &String| {
            depth += i32::from(token == "(" || token == "[") - i32::from(token == ")" || token == "]");
            token == "{" || (token == ";" && depth == 0)
        };
        let end = rest.iter().position(ends).expect("the end of a signature");
        let signature = rest[..end].join(" ");
        let returns = signature.contains("- >");
        let changes_self = signature.contains(" mut self") && !signature.starts_with("( mut self");
        found.push((name.clone(), returns && !changes_self));
    }
    found
}

#[test]
fn types_and_questions_are_found() {
    let source = r#"
struct One<T>(T);
pub(crate) enum Two {}
trait Three {
    type Item;
    fn is_asked(&self) -> bool;
}
type Four = One<u8>;
impl Three for Two {
    type Item = u8;
    async fn is_done(&self) {}
    pub fn has_changed(&'a mut self, by: u8) -> bool {
        true
    }
    fn is_consumed(mut self) -> bool {
        false
    }
}
"#;
    let code = tokens(&without_text(source));
    assert_eq!(types_of(&code), ["One", "Two", "Three", "Four"]);
    let expected = [("is_asked", true), ("is_done", false), ("has_changed", false), ("is_consumed", true)];
    assert_eq!(questions_of(&code), expected.map(|(name, is_question)| (name.to_owned(), is_question)));
}
