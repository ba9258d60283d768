//! The locks and the election of `lockkeeper::blocking` have the methods of the async ones, with the same
//! names and arguments. Everything else is a call of the async API.
//!
//! Read from the `impl` blocks of both. Each difference has a line here, with its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::{named, without_tests, without_text};
use super::{files, read};

/// Methods that only one side has, or that have other arguments.
const DIFFERENCES: &[(&str, &[&str], &str)] = &[
    ("ConnectionManager", &["connect_with"], "the call that waits is the builder's on the async side"),
    ("ConnectionManager", &["closing"], "a shutdown ends all waits, and `transitions` shows it"),
    ("ConnectionManager", &["is_closing", "is_same_as", "node_data", "now"], "by `as_async`: it never waits"),
    ("ConnectionManager", &["operation_timeout", "session_timeout"], "by `as_async`: it never waits"),
    ("ConnectionManager", &["session_id", "views_session_id"], "by `as_async`: it never waits"),
    ("ConnectionManager", &["set_servers"], "by `call`: seldom, and not by those that take locks"),
    ("ConnectionManager", &["txn"], "by `as_async`, and its commit by `call`"),
    ("ConnectionManager", &["whole_path"], "by `as_async`: for recipe authors"),
    ("ConnectionManager", &["znodes"], "by `call`: nodes beside the locks"),
    ("ConnectionPool", &["connect_with"], "the call that waits is the builder's on the async side"),
    ("Guard", &["lost", "wait_lost"], "a thread needs a limit for this wait"),
    ("Guard", &["revoke_requested"], "by `hold()` and `call`"),
    ("Guard", &["run"], "the work of a thread cannot be dropped"),
    ("ZooKeeperLock", &["acquire_owned"], "a thread keeps no future"),
    ("ZooKeeperLock", &["as_recipe", "sealed"], "the seals of the two traits"),
    ("Mutex", &["enqueue"], "by `call`: a ticket is for tasks"),
    ("ReentrantMutex", &["acquire", "acquire_timeout", "try_acquire"], "the owner is the thread"),
    (
        "ReentrantMutex",
        &["acquire_scoped", "acquire_scoped_timeout", "try_acquire_scoped", "for_owner", "hold_count"],
        "the owner is the thread",
    ),
    ("ReentrantMutex", &["enqueue"], "by `call`: a ticket is for tasks"),
    ("RwLock", &["enqueue_read", "enqueue_write"], "by `call`: a ticket is for tasks"),
    ("Semaphore", &["enqueue", "enqueue_many"], "by `call`: a ticket is for tasks"),
];

/// The public methods of each type and public trait, with the names of their arguments.
type Methods = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Both sides, as the sources have them.
struct Sides {
    tasks: Methods,
    threads: Methods,
    /// The names that the pages of each side have.
    task_types: BTreeSet<String>,
    thread_types: BTreeSet<String>,
}

impl Sides {
    fn read() -> Self {
        let (threads, tasks): (Vec<_>, Vec<_>) = files("recipes/src", &[".rs"])
            .into_iter()
            .partition(|file| file.starts_with("recipes/src/blocking/"));
        let mut tasks = methods_of(&tasks);
        for (name, methods) in methods_of(&files("src", &[".rs"])) {
            tasks.entry(name).or_insert(methods);
        }
        let exported = |files: &[&str]| {
            let named = files.iter().flat_map(|file| named(&read(&format!("recipes/src/{file}.rs"))));
            named.filter_map(|of| of.imported_as).collect()
        };
        let mut read = Self {
            tasks,
            threads: methods_of(&threads),
            task_types: exported(&["lib", "config", "election/mod", "locks", "manager", "znodes"]),
            thread_types: exported(&["blocking/mod"]),
        };
        read.resolve_aliases(&threads);
        read
    }

    /// Adds to each alias of a type that only threads have, such as `Blocking`, the methods of that type. An
    /// alias of the async type itself is the same type, and needs no comparison.
    fn resolve_aliases(&mut self, files: &[String]) {
        let sources: Vec<String> = files.iter().map(|file| without_text(&read(file))).collect();
        let aliases = sources.iter().flat_map(|text| text.lines());
        for (alias, base) in aliases
            .filter_map(|line| line.strip_prefix("pub type "))
            .filter_map(|alias| alias.rsplit_once(" = "))
        {
            let (name, base_name) = (identifier(alias), identifier(base));
            if name == base_name && base.starts_with("crate::") {
                self.thread_types.remove(name);
            }
            if let Some(inherited) = self.threads.get(base_name).cloned()
                && !self.task_types.contains(base_name)
            {
                self.threads.entry(name.to_owned()).or_default().extend(inherited);
            }
        }
    }

    /// The types of both sides.
    fn twins(&self) -> impl Iterator<Item = &String> {
        self.thread_types.intersection(&self.task_types)
    }

    /// The methods of a type that differ, with what differs.
    fn differences(&self, name: &str) -> BTreeMap<String, &'static str> {
        let none = BTreeMap::new();
        let tasks = self.tasks.get(name).unwrap_or(&none);
        let threads = self.threads.get(name).unwrap_or(&none);
        let mut found = BTreeMap::new();
        for (method, of_tasks) in tasks {
            match threads.get(method) {
                None => drop(found.insert(method.clone(), "is missing in blocking")),
                Some(of_threads) if of_threads != of_tasks => {
                    found.insert(method.clone(), "has other arguments in blocking");
                }
                Some(_) => {}
            }
        }
        let of_every_type = &self.threads["Blocking"];
        let is_added = |method: &String| {
            // A task limits any call by `tokio::time::timeout`, and a thread by such a method.
            let is_limited = method.strip_suffix("_timeout").is_some_and(|stem| tasks.contains_key(stem));
            !of_every_type.contains_key(method) && !is_limited
        };
        for method in threads.keys().filter(|method| !tasks.contains_key(*method) && is_added(method)) {
            found.insert(method.clone(), "exists in blocking only");
        }
        found
    }
}

#[test]
fn the_blocking_locks_have_the_methods_of_the_async_ones() {
    let sides = Sides::read();
    assert!(sides.twins().count() > 20, "{:?}", sides.twins().collect::<Vec<_>>());
    let is_stated = |name: &str, method: &str| {
        DIFFERENCES.iter().any(|(of, methods, _)| *of == name && methods.contains(&method))
    };
    let mut unstated = Vec::new();
    for name in sides.twins() {
        for (method, difference) in sides.differences(name) {
            if !is_stated(name, &method) {
                unstated.push(format!("{name}::{method} {difference}"));
            }
        }
    }
    assert!(unstated.is_empty(), "add the method, or the difference and its reason: {unstated:#?}");
}

#[test]
fn every_stated_difference_of_the_blocking_locks_exists() {
    let sides = Sides::read();
    let mut stale = Vec::new();
    for (name, methods, _) in DIFFERENCES {
        let differences = sides.differences(name);
        let is_stale = |method: &&&str| !differences.contains_key(**method);
        stale.extend(methods.iter().filter(is_stale).map(|method| format!("{name}::{method}")));
    }
    assert!(stale.is_empty(), "these are the same on both sides: {stale:#?}");
}

/// The public methods that files have.
fn methods_of(files: &[String]) -> Methods {
    let mut found = Methods::new();
    for file in files {
        for (name, methods) in methods_in(&read(file)) {
            found.entry(name).or_default().extend(methods);
        }
    }
    found
}

/// The public methods in a source. rustfmt puts an `impl` and its end into the first column, and the methods
/// into the fifth.
fn methods_in(source: &str) -> Methods {
    let source = without_tests(&without_text(source));
    let mut found = Methods::new();
    let mut rest = source.as_str();
    while let Some(line) = rest.lines().next() {
        if !line.starts_with("impl") && !line.starts_with("pub trait ") {
            rest = &rest[(line.len() + 1).min(rest.len())..];
            continue;
        }
        let (header, body) = rest.split_once('{').expect("a block");
        let end = body.find("\n}").map_or(body.len(), |end| end + 2);
        let end = if body.starts_with('}') { 1 } else { end };
        if let Some(name) = subject(header) {
            let of_type = found.entry(name.to_owned()).or_default();
            of_type.extend(methods_of_block(&body[..end], header.starts_with("pub trait")));
        }
        rest = &body[end..];
    }
    found
}

/// The type or trait of a block. `None` for the implementation of a trait.
fn subject(header: &str) -> Option<&str> {
    if let Some(name) = header.strip_prefix("pub trait ") {
        return Some(identifier(name));
    }
    let behind = header.strip_prefix("impl").expect("a block");
    let behind = if behind.starts_with('<') { bracketed(behind).1 } else { behind };
    (!behind.contains(" for ")).then(|| identifier(behind.trim_start()))
}

fn methods_of_block(body: &str, is_trait: bool) -> BTreeMap<String, Vec<String>> {
    let begin = if is_trait { "\n    fn " } else { "\n    pub " };
    let mut found = BTreeMap::new();
    for part in body.split(begin).skip(1) {
        let part = part.trim_start_matches("const ").trim_start_matches("async ");
        let Some(behind) = part.strip_prefix("fn ").or_else(|| is_trait.then_some(part)) else { continue };
        let name = identifier(behind);
        found.insert(name.to_owned(), arguments(&behind[name.len()..]));
    }
    found
}

/// The last name of a path at the beginning of a text.
fn identifier(text: &str) -> &str {
    let is_path = |c: char| c == '_' || c == ':' || c.is_alphanumeric();
    let path = &text[..text.find(|c| !is_path(c)).unwrap_or(text.len())];
    path.trim_end_matches(':').rsplit("::").next().unwrap_or(path)
}

/// The names of the arguments, of a text that begins behind the name of a function. `self` counts as none.
fn arguments(behind: &str) -> Vec<String> {
    let behind = if behind.starts_with('<') { bracketed(behind).1 } else { behind };
    let inside = bracketed(behind).0;
    let commas = nested(inside).filter(|(_, c, open)| *c == ',' && *open == 0).map(|(at, ..)| at);
    let mut begin = 0;
    let mut found = Vec::new();
    for end in commas.chain([inside.len()]) {
        let name = inside[begin..end].split(':').next().unwrap_or_default().trim();
        let name = name.trim_start_matches("mut ");
        if !name.is_empty() && !name.ends_with("self") {
            found.push(name.to_owned());
        }
        begin = (end + 1).min(inside.len());
    }
    found
}

/// What is within the brackets at the beginning of a text, and what follows them.
fn bracketed(text: &str) -> (&str, &str) {
    let (end, ..) = nested(text).find(|(.., open)| *open == 0).expect("the end of the brackets");
    (&text[1..end], &text[end + 1..])
}

/// Each character with the number of brackets that are open behind it. The arrow of a result closes none.
fn nested(text: &str) -> impl Iterator<Item = (usize, char, i32)> {
    let (mut open, mut last) = (0, ' ');
    text.char_indices().map(move |(at, c)| {
        open += match c {
            '(' | '<' | '[' => 1,
            ')' | ']' => -1,
            '>' if last != '-' => -1,
            _ => 0,
        };
        last = c;
        (at, c, open)
    })
}

#[test]
fn methods_are_found_with_their_arguments() {
    let source = "
impl<T: Fn(&[u8]) -> Result<T, E>> crate::View<One, T> {
    /// pub fn in_a_comment() {}
    pub fn new<E: Into<X<Y>>>(
        manager: &Manager,
        decode: impl Fn(&str, &[u8]) -> Result<T, E>,
    ) -> Result<Self, E> {
        Self::with(manager, decode)
    }

    pub(crate) fn hidden(&self) {}

    pub async fn wait(mut self, limit: Duration) {}
}

impl Debug for View {
    pub fn of_a_trait() {}
}

impl Empty {}

pub trait Lock: Debug {
    fn take(&self) -> BoxFuture<'_, ()> {
    }
    fn path(&self) -> &str;
    fn give(
        &self,
        data: Vec<u8>,
    );
}
";
    let found = methods_in(source);
    let of = |arguments: &[&str]| arguments.iter().map(|name| (*name).to_owned()).collect();
    let view = [("new", of(&["manager", "decode"])), ("wait", of(&["limit"]))];
    let lock = [("give", of(&["data"])), ("path", of(&[])), ("take", of(&[]))];
    for (name, expected) in [("View", &view[..]), ("Empty", &[]), ("Lock", &lock)] {
        let found: Vec<_> = found[name].iter().map(|(name, of)| (name.as_str(), of.clone())).collect();
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(found.len(), 3);
}
