//! Imports point one way: between the folders of the core, and between the files of each folder.
//!
//! Read from the `use` declarations and the paths in the code of every file. A re-export of a `mod.rs` counts
//! as imported from the file that has it. Tests may import what they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rust::{Named, Path, named};
use super::{files, read};

/// The modules of the core. Each imports only those before it; `docs/architecture.md` says why in this order.
const ORDER: &[&str] = &[
    "sync",
    "shared_future",
    "time",
    "znode",
    "config",
    "error",
    "watch",
    "environment",
    "telemetry",
    "wire",
    "session",
    "manager",
    "retry",
    "txn",
    "view",
    "presence",
    "local",
    "hold",
    "queue",
    "inspect",
    "rendezvous",
    "register",
    "revoker",
    "znodes",
    "author",
    "simulation",
    "fuzzing",
];

/// The sources of each crate.
const ROOTS: &[&str] = &["src", "recipes/src", "lock/src", "redis/src", "tower/src", "fence/src", "cli/src"];

/// The modules of a crate, and what each imports from which.
struct Crate {
    /// The file of each module. The root of the crate is the empty path.
    modules: BTreeMap<Path, String>,
    /// By module and name: the item that the module re-exports under the name.
    known: BTreeMap<(Path, String), Path>,
    imports: BTreeSet<(Path, Path)>,
}

impl Crate {
    fn read(folder: &str) -> Self {
        let sources: Vec<String> =
            files(folder, &[".rs"]).into_iter().filter(|file| !is_test(file)).collect();
        let modules: BTreeMap<Path, String> =
            sources.into_iter().map(|file| (module(folder, &file), file)).collect();
        let mut read_crate = Self { modules, known: BTreeMap::new(), imports: BTreeSet::new() };
        let mut found = Vec::new();
        for (module, file) in &read_crate.modules {
            for Named { path, imported_as } in named(&read(file)) {
                let Some(path) = from_the_root(module, &path) else { continue };
                if let Some(name) = imported_as {
                    read_crate.known.insert((module.clone(), name), path.clone());
                }
                found.push((module.clone(), path));
            }
        }
        for (from, path) in found {
            let to = read_crate.home(&path);
            if from != to {
                read_crate.imports.insert((from, to));
            }
        }
        read_crate
    }

    /// The module that has what `path` names.
    fn home(&self, path: &[String]) -> Path {
        let mut path = path.to_vec();
        // Each step follows a name to where it is re-exported from; no chain is that long.
        for _ in 0..20 {
            let depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]));
            let (module, rest) = path.split_at(depth.expect("a crate has a root"));
            let Some((name, rest)) = rest.split_first() else { return module.to_vec() };
            match self.known.get(&(module.to_vec(), name.clone())) {
                Some(target) => path = [target, rest].concat(),
                None => return module.to_vec(),
            }
        }
        panic!("{path:?} is re-exported in a circle");
    }
}

/// Compiled for tests only.
fn is_test(file: &str) -> bool {
    file.ends_with("_test.rs") || file.ends_with("/tests.rs") || file.contains("/tests/")
}

/// `src/hold/mod.rs` is `["hold"]`.
fn module(folder: &str, file: &str) -> Path {
    let path = file.strip_prefix(folder).unwrap().strip_suffix(".rs").unwrap();
    let mut path: Path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// The same path from the root of the crate; `None` for another crate's.
fn from_the_root(module: &[String], path: &[String]) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    let (mut base, mut rest) = match first.as_str() {
        "crate" => (Vec::new(), rest),
        "self" => (module.to_vec(), rest),
        "super" => (module[..module.len() - 1].to_vec(), rest),
        _ => return None,
    };
    while let Some(("super", behind)) = rest.split_first().map(|(first, behind)| (first.as_str(), behind)) {
        base.pop();
        rest = behind;
    }
    base.extend_from_slice(rest);
    Some(base)
}

#[test]
fn the_modules_of_the_core_import_only_those_before_them() {
    let core = Crate::read("src");
    let position = |module: &Path| {
        let name = module.first()?;
        Some(ORDER.iter().position(|of| of == name).unwrap_or_else(|| panic!("{name} is not in ORDER")))
    };
    for name in ORDER {
        let is_there = core.modules.keys().any(|module| module.first().is_some_and(|first| first == name));
        assert!(is_there, "ORDER names {name}, which is no module");
    }
    for (from, to) in &core.imports {
        // The root imports all of them to re-export it, and nothing imports what only the root has.
        let Some(importer) = position(from) else { continue };
        let file = &core.modules[from];
        let imported = position(to).unwrap_or_else(|| panic!("{file} imports what lib.rs has"));
        assert!(imported <= importer, "{file} imports from {}, which is above it in ORDER", core.modules[to]);
    }
}

#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for root in ROOTS {
        let read = Crate::read(root);
        let folders: BTreeSet<&[String]> =
            read.modules.keys().filter_map(|module| module.split_last()).map(|(_, folder)| folder).collect();
        for folder in folders {
            let name = [&[(*root).to_owned()], folder].concat().join("/");
            let circle = shortest_circle(&imports_within(&read, folder));
            circles.extend(circle.map(|circle| format!("{name}: {}", circle.join(" → "))));
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn no_file_imports_what_a_mod_rs_above_it_defines() {
    let mut upward = Vec::new();
    for root in ROOTS {
        let Crate { modules, imports, .. } = Crate::read(root);
        let up = imports.iter().filter(|(from, to)| from.starts_with(to));
        upward.extend(up.map(|(from, to)| format!("{} imports what {} defines", modules[from], modules[to])));
    }
    assert!(upward.is_empty(), "a mod.rs has the modules of its folder and their re-exports: {upward:#?}");
}

/// Which files and folders of a folder import which of it.
fn imports_within<'a>(of: &'a Crate, folder: &[String]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let child = |module: &'a Path| module.strip_prefix(folder)?.first().map(String::as_str);
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in &of.imports {
        if let (Some(from), Some(to)) = (child(from), child(to))
            && from != to
        {
            found.entry(from).or_default().insert(to);
        }
    }
    found
}

/// A circle of as few modules as possible, from one of them back to itself.
fn shortest_circle<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let circle_of = |start: &&'a str| {
        let mut reached = BTreeSet::new();
        let mut paths = VecDeque::from([vec![*start]]);
        while let Some(path) = paths.pop_front() {
            for &next in imports.get(path.last()?).into_iter().flatten() {
                let longer = [&path[..], &[next]].concat();
                if next == *start {
                    return Some(longer);
                }
                if reached.insert(next) {
                    paths.push_back(longer);
                }
            }
        }
        None
    };
    imports.keys().filter_map(circle_of).min_by_key(Vec::len)
}

#[test]
fn a_circle_is_found_and_a_tree_is_none() {
    let imports = |pairs: &[(&'static str, &'static str)]| {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in pairs {
            found.entry(from).or_default().insert(to);
        }
        found
    };
    let mut tree = vec![("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")];
    assert_eq!(shortest_circle(&imports(&tree)), None);
    tree.push(("d", "b"));
    assert_eq!(shortest_circle(&imports(&tree)), Some(vec!["b", "d", "b"]));
}
