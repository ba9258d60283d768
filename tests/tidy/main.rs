#![doc = "The rules of the repository itself. They read its files and need no server."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod aliases;
mod blocking;
mod counts;
mod examples;
mod forges;
mod glossary;
mod imports;
mod names;
mod old_names;
mod published;
mod questions;
mod repository;
mod rust;
mod size;
mod unit_tests;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below `folder` whose name ends with one of `ends`, by its path from the root.
fn files(folder: &str, ends: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with("target") && name != ".git" {
                    folders.push(path);
                }
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
