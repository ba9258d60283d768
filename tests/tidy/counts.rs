//! Counts are `u32` in every public signature, and zero is refused where it makes no sense: a `usize` there
//! is a length or a size, and is listed with its reason.

use super::rust::{tokens, without_tests, without_text};
use super::{files, read};

/// The public items with a `usize`: the file, the item, and why it counts nothing of the domain.
const LENGTHS: [(&str, &str, &str); 23] = [
    ("lock/src/count.rs", "count_of", "takes the length of a collection, and makes a count of it"),
    ("recipes/src/counter/error.rs", "bits", "the size of a number"),
    ("recipes/src/counter/error.rs", "bytes", "the length of the data of a node"),
    ("recipes/src/counter/error.rs", "expected", "the size of a number in bytes"),
    ("recipes/src/survey/search.rs", "below_with", "bounds the nodes in memory, as the bounds of a view do"),
    ("redis/src/rule/lock_rule.rs", "ahead", "the index of a waiter in the queue of a rule, for tests"),
    ("redis/src/rule/starts_rule.rs", "new", "the length of the list of starts of a rule, for tests"),
    ("redis/src/rule/starts_rule.rs", "admit", "the length of the list of starts of a rule, for tests"),
    ("src/config/error.rs", "bytes", "the size of a request"),
    ("src/config/error.rs", "max", "the size of a request"),
    ("src/config/limits.rs", "NODE_BYTES_MAX", "the size of a record"),
    ("src/config/limits.rs", "REQUEST_BYTES_MAX", "the size of a request"),
    ("src/error/operation_error.rs", "index", "the index of a write in its transaction"),
    ("src/manager/builder/options.rs", "node_bytes_max", "the size of a record"),
    ("src/queue/bench_hooks.rs", "lower_in", "an index in a list, for benchmarks"),
    ("src/view/bounds.rs", "bytes", "bounds the memory of a view"),
    ("src/view/bounds.rs", "events", "bounds the length of a queue of a view"),
    ("src/view/bounds.rs", "nodes", "bounds the memory of a view"),
    ("src/view/snapshot.rs", "bytes", "the size of a snapshot in memory"),
    ("src/view/snapshot.rs", "len", "the length of a collection"),
    ("src/wire/error.rs", "index", "the index of a write in its transaction"),
    ("src/znode/name.rs", "LABEL_BYTES_MAX", "the length of a text"),
    ("src/znode/path.rs", "PATH_BYTES_MAX", "the length of a text"),
];

#[test]
fn whatever_counts_things_of_the_domain_is_a_u32_in_public() {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut public = 0;
    for folder in ["src", "lock/src", "recipes/src", "redis/src", "tower/src", "fence/src"] {
        for file in files(folder, &[".rs"]) {
            // These modules are compiled for tests only.
            if file.contains("/tests/") || file.ends_with("_test.rs") {
                continue;
            }
            let items = public_items(&read(&file));
            public += items.len();
            let with_usize = items.into_iter().filter(has_usize);
            found.extend(with_usize.map(|item| (file.clone(), item.name)));
        }
    }
    assert!(public > 1_000, "only {public} public items were found");
    found.sort();
    found.dedup();
    let is_listed = |(file, name): &(String, String)| {
        LENGTHS.iter().any(|(of_file, of_name, _)| file == of_file && name == of_name)
    };
    let unlisted: Vec<_> = found.iter().filter(|item| !is_listed(item)).collect();
    assert!(unlisted.is_empty(), "counts are u32 in public (CONTRIBUTING.md): {unlisted:#?}");
    let is_gone = |(file, name, _): &&(&str, &str, &str)| {
        !found.iter().any(|(of_file, of_name)| file == of_file && name == of_name)
    };
    let gone: Vec<_> = LENGTHS.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "the list names what is not there: {gone:#?}");
}

/// A public item, or a part of one: a function, a constant, a field.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    name: String,
    /// The tokens of its types.
    types: Vec<String>,
}

fn has_usize(item: &Item) -> bool {
    item.types.iter().any(|token| ["usize", "NonZeroUsize", "NonZeroU32"].contains(&token.as_str()))
}

impl Item {
    fn of(name: &str, types: &[String]) -> Self {
        Self { name: name.to_owned(), types: types.to_vec() }
    }
}

/// The items that are `pub` without a limit, the fields of enums, and the functions of traits.
fn public_items(source: &str) -> Vec<Item> {
    let tokens = tokens(&without_tests(&without_text(source)));
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token != "pub" || tokens[at + 1] == "(" {
            continue;
        }
        let mut item = &tokens[at + 1..];
        while matches!(item[0].as_str(), "async" | "unsafe") || (item[0] == "const" && item[1] == "fn") {
            item = &item[1..];
        }
        let name = &item[1];
        match item[0].as_str() {
            // Their parts have a `pub` of their own.
            "struct" | "mod" | "use" => {}
            "fn" => found.push(Item::of(name, until(item, &["{", ";"]))),
            "const" | "static" => found.push(Item::of(name, until(item, &["=", ";"]))),
            "type" => found.push(Item::of(name, until(item, &[";"]))),
            "enum" => found.extend(fields(body(item), name)),
            "trait" => found.extend(functions(body(item))),
            field => found.push(Item::of(field, until(item, &[",", "}", ")"]))),
        }
    }
    found
}

/// The tokens before the first of these that is in no brackets.
fn until<'a>(tokens: &'a [String], ends: &[&str]) -> &'a [String] {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        if depth == 0 && ends.contains(&token.as_str()) {
            return &tokens[..at];
        }
        match token.as_str() {
            "(" | "[" | "<" => depth += 1,
            // Not the end of an arrow.
            ">" if tokens[at - 1] == "-" || tokens[at - 1] == "=" => {}
            ")" | "]" | ">" => depth -= 1,
            _ => {}
        }
    }
    tokens
}

/// What is between the braces of an item.
fn body(item: &[String]) -> &[String] {
    let begin = item.iter().position(|token| token == "{").expect("a body") + 1;
    &item[begin..begin + closing(&item[begin..])]
}

/// Where the brace closes that was opened before.
fn closing(tokens: &[String]) -> usize {
    let mut depth = 1;
    let end = tokens.iter().position(|token| {
        depth += match token.as_str() {
            "{" => 1,
            "}" => -1,
            _ => 0,
        };
        depth == 0
    });
    end.expect("the end of a body")
}

/// The fields of an enum. One without a name has that of its variant.
fn fields(body: &[String], of: &str) -> Vec<Item> {
    let mut found = Vec::new();
    let mut variant = of;
    for (at, token) in body.iter().enumerate() {
        match token.as_str() {
            ":" => found.push(Item::of(&body[at - 1], until(&body[at + 1..], &[",", "}"]))),
            "(" if at > 0 && body[at - 1].starts_with(char::is_uppercase) => {
                variant = &body[at - 1];
                found.push(Item::of(variant, until(&body[at + 1..], &[")"])));
            }
            _ => {}
        }
    }
    // Every enum is an item, also one without fields.
    found.push(Item::of(variant, &[]));
    found
}

/// The functions of a trait, without the bodies of those that have one.
fn functions(body: &[String]) -> Vec<Item> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < body.len() {
        match body[at].as_str() {
            "fn" => {
                let signature = until(&body[at..], &["{", ";"]);
                found.push(Item::of(&body[at + 1], signature));
                at += signature.len();
            }
            "{" => at += 1 + closing(&body[at + 1..]),
            _ => at += 1,
        }
    }
    found
}

#[test]
fn every_form_of_a_public_usize_is_found() {
    let source = "
pub const A: usize = 1;
const NOT: usize = 1;
pub type B = Vec<NonZeroUsize>;
pub type O = NonZeroU32;
pub struct C {
    pub d: Option<usize>,
    pub(crate) not: usize,
    not: usize,
}
pub struct E(pub usize, usize);
pub enum F {
    G { /* a comment */ h: usize },
    I(usize),
    Not,
}
pub trait J {
    fn k(&self, of: [u8; 4]) -> usize;
    fn not(&self) -> u32 {
        let not: usize = 1;
        not as u32
    }
    fn l(&self, of: usize) {}
}
impl C {
    pub async fn m(&self, of: impl Fn(usize) -> u32) -> u32 {
        let not: usize = 1;
        not as u32
    }
    pub const fn n(self) -> Result<Vec<u8>, usize> {}
    pub fn not(&self) -> u32 {
        let not: usize = 1;
        not as u32
    }
    pub(crate) fn not(&self) -> usize {}
}
#[cfg(test)]
mod tests {
    pub fn not() -> usize {}
}
";
    let with_usize = public_items(source).into_iter().filter(has_usize);
    let found: Vec<String> = with_usize.map(|item| item.name).collect();
    assert_eq!(found, ["A", "B", "O", "d", "usize", "h", "I", "k", "l", "m", "n"]);
}
