//! An example is one file that a user can copy: it names crates that a user can add, and no others.

use std::collections::BTreeSet;

use super::repository::setting;
use super::{files, read, root};

const MANIFEST: &str = "examples/Cargo.toml";
const EXAMPLE_LINES_MAX: usize = 100;

/// The files directly in `examples/`, without those of its folders.
fn examples() -> Vec<String> {
    let found: Vec<String> =
        files("examples", &[".rs"]).into_iter().filter(|file| file.matches('/').count() == 1).collect();
    assert!(found.len() > 12, "{found:?}");
    found
}

/// The packages that a section of a manifest names, in the spelling of Rust.
fn named_in(manifest: &str, section: &str) -> BTreeSet<String> {
    let text = read(manifest);
    let lines = text.lines().skip_while(|line| *line != section).skip(1);
    let names =
        lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ']).next());
    names.filter(|name| !name.is_empty() && *name != "#").map(|name| name.replace('-', "_")).collect()
}

/// The crates that a file imports.
fn imported(text: &str) -> BTreeSet<String> {
    let paths = text.lines().filter_map(|line| line.strip_prefix("use "));
    let crates = paths.filter_map(|path| path.split([':', ';', ' ']).next()).filter(|name| *name != "std");
    crates.map(str::to_owned).collect()
}

#[test]
fn an_example_is_one_short_file_on_public_crates_alone() {
    let packages = named_in(MANIFEST, "[dependencies]");
    assert!(packages.contains("lockkeeper") && packages.contains("tokio"), "{packages:?}");
    let ours = files(".", &["Cargo.toml"]);
    let is_private = |package: &str| {
        let of_it = ours.iter().find(|manifest| setting(manifest, "name").replace('-', "_") == package);
        of_it.is_some_and(|manifest| setting(manifest, "publish") == "false")
    };
    assert!(is_private("lockkeeper_tests"), "private packages are found");
    for manifest in [MANIFEST, "examples/service/Cargo.toml", "examples/telemetry/Cargo.toml"] {
        for package in named_in(manifest, "[dependencies]") {
            assert!(!is_private(&package), "{manifest} depends on {package}, which no user can add");
        }
    }
    let manifest = read(MANIFEST);
    for section in ["[dev-dependencies]", "[lib]", "[build-dependencies]"] {
        assert!(!manifest.contains(section), "{MANIFEST} has {section}: an example would not be one file");
    }
    for file in examples() {
        let text = read(&file);
        let has_modules = text.lines().any(|line| line.starts_with("mod ") || line.contains("#[path"));
        assert!(!has_modules, "{file} is more than one file");
        let lines = text.lines().count();
        assert!(lines <= EXAMPLE_LINES_MAX, "{file} has {lines} lines");
        for name in imported(&text) {
            assert!(packages.contains(&name), "{file} imports {name}, which {MANIFEST} does not name");
        }
    }
}

#[test]
fn an_example_names_the_crates_to_add() {
    for file in examples().into_iter().filter(|file| file != "examples/first.rs") {
        let text = read(&file);
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let (_, named) = head.iter().position(|line| line.contains("Copy this file")).map_or_else(
            || panic!("{file} does not say which crates to add"),
            |at| (at, head[at..].join(" ")),
        );
        let quoted: BTreeSet<&str> = named.split('`').skip(1).step_by(2).collect();
        for name in imported(&text) {
            assert!(
                quoted.contains(name.replace('_', "-").as_str()),
                "{file} does not name the crate {name}"
            );
        }
    }
}

#[test]
fn every_example_is_built_and_the_readme_names_it() {
    let (manifest, readme) = (read(MANIFEST), read("README.md"));
    for file in examples() {
        let name = file.trim_start_matches("examples/").trim_end_matches(".rs");
        assert!(manifest.contains(&format!("path = \"{name}.rs\"")), "{MANIFEST} does not build {file}");
        assert!(readme.contains(&format!("({file})")), "README.md has no link to {file}");
    }
}

#[test]
fn no_program_that_a_reader_runs_is_built_with_the_harness_of_the_tests() {
    for manifest in files("examples", &["Cargo.toml"]) {
        let text = read(&manifest);
        assert!(!text.contains("[dev-dependencies]"), "{manifest}: the tests are in tests/examples");
        for private in ["lockkeeper-tests", "lockkeeper-redis-tests", "lockkeeper-test-recipes"] {
            assert!(!text.contains(&format!("{private}.workspace")), "{manifest} names {private}");
        }
    }
    assert!(root().join("tests/examples/claims.rs").exists());
}

const ANSWER_LINES_MAX: usize = 20;

#[test]
fn an_answer_of_the_cookbook_is_short_and_is_run() {
    let page = read("docs/cookbook.md");
    let answers: Vec<&str> = page.split("\n### ").skip(1).collect();
    assert!(answers.len() >= 30, "{} answers", answers.len());
    for answer in answers {
        let (title, text) = answer.split_once('\n').unwrap();
        // What follows the last answer of a part is the next part.
        let text = text.split("\n## ").next().unwrap();
        let blocks: Vec<&str> =
            text.split("```rust").skip(1).filter_map(|of| of.split("```").next()).collect();
        assert!(!blocks.is_empty(), "{title} has no code");
        for block in blocks {
            assert!(block.starts_with('\n'), "{title} is not run");
            let shown = block.lines().skip(1).filter(|line| !line.starts_with("# ") && *line != "#").count();
            assert!(shown <= ANSWER_LINES_MAX, "{title} shows {shown} lines");
        }
    }
}
