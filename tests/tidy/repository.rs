//! The documents, the manifests and the sources agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{files, read, root};

/// The packages a manifest depends on, but for those of its tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in read(manifest).lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inside =
                name == "dependencies" || (name.starts_with("target.") && name.ends_with(".dependencies"));
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            found.push(name.to_owned());
        }
    }
    found
}

/// The value of `key` in a manifest.
pub(crate) fn setting(manifest: &str, key: &str) -> String {
    let text = read(manifest);
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap_or_default();
    line.split_once(" = ").map(|(_, value)| value.trim_matches('"').to_owned()).unwrap_or_default()
}

/// The paths of all packages' manifests, the root's first.
pub(crate) fn manifests() -> Vec<String> {
    let members = setting("Cargo.toml", "members");
    let folders = members.split('"').filter(|part| part.starts_with(|c: char| c == '.' || c.is_alphabetic()));
    let manifests: Vec<String> =
        folders.map(|folder| format!("{folder}/Cargo.toml").replace("./", "")).collect();
    assert!(manifests.len() >= 5, "{members}");
    manifests
}

/// The text between pairs of backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn one_folder_names_the_client_crate() {
    let named: Vec<String> = ["src", "recipes"]
        .into_iter()
        .flat_map(|folder| files(folder, &[".rs"]))
        .filter(|file| read(file).contains("zookeeper_client"))
        .collect();
    assert!(!named.is_empty());
    for file in named {
        assert!(file.starts_with("src/wire/zookeeper/"), "{file} names the client crate");
    }
}

#[test]
fn no_select_chooses_at_random() {
    // The simulation replays a seed only if every choice is the seed's.
    for file in
        ["src", "recipes", "redis", "tower", "fence"].into_iter().flat_map(|folder| files(folder, &[".rs"]))
    {
        let text = read(&file);
        for branches in text.split("select! {").skip(1) {
            assert!(
                branches.trim_start().trim_start_matches("///").trim_start().starts_with("biased;"),
                "{file} has a select! without `biased;`"
            );
        }
    }
}

#[test]
fn only_the_core_depends_on_the_client_crate() {
    let depend: Vec<String> = manifests()
        .into_iter()
        .filter(|manifest| dependencies(manifest).iter().any(|name| name == "zookeeper-client"))
        // The comparison with peers runs the client by itself.
        .filter(|manifest| manifest != "benches/Cargo.toml")
        .collect();
    assert_eq!(depend, ["Cargo.toml"]);
}

#[test]
fn packages_depend_one_way() {
    let ours = |manifest: &str| -> Vec<String> {
        dependencies(manifest).into_iter().filter(|name| name.starts_with("lockkeeper")).collect()
    };
    assert_eq!(ours("lock/Cargo.toml"), [""; 0], "what all engines share depends on no package of ours");
    assert_eq!(ours("Cargo.toml"), ["lockkeeper-lock"]);
    assert_eq!(ours("tests/server/Cargo.toml"), [""; 0], "the test server depends on no package of ours");
    assert_eq!(
        ours("tests/exploration/Cargo.toml"),
        [""; 0],
        "the explorations depend on no package of ours"
    );
    assert_eq!(ours("recipes/Cargo.toml"), ["lockkeeper-core", "lockkeeper-lock"]);
    assert_eq!(ours("redis/Cargo.toml"), ["lockkeeper-lock"]);
    assert_eq!(ours("tower/Cargo.toml"), ["lockkeeper"]);
    assert_eq!(ours("fence/Cargo.toml"), ["lockkeeper", "lockkeeper-lock"]);
    let of_fence = read("fence/Cargo.toml");
    let is_optional = of_fence.contains("lockkeeper = { workspace = true, optional = true }");
    assert!(is_optional, "a fence serves the locks of all engines");
    for manifest in manifests() {
        let unpublished = setting(&manifest, "publish") == "false";
        let on_unpublished = ours(&manifest).iter().any(|name| name == "lockkeeper-tests");
        assert!(unpublished || !on_unpublished, "{manifest} is published and needs the tests");
    }
}

#[test]
fn every_package_keeps_the_rules_of_the_workspace() {
    // One is as the author of a recipe has it, and has no workspace around it.
    for manifest in manifests().into_iter().filter(|manifest| manifest != "tests/outside/Cargo.toml") {
        let text = read(&manifest);
        for line in [
            "version.workspace = true",
            "edition.workspace = true",
            "license.workspace = true",
            "[lints]\nworkspace = true",
        ] {
            assert!(text.contains(line), "{manifest} has no `{line}`");
        }
    }
}

#[test]
fn cargo_test_covers_every_package() {
    assert_eq!(setting("Cargo.toml", "default-members"), setting("Cargo.toml", "members"));
}

#[test]
fn no_test_is_written_where_none_is_run() {
    let is_untested = |text: &str| {
        let lib = text.split("\n[").find(|section| section.starts_with("lib]")).unwrap_or_default();
        lib.contains("\ntest = false") && !text.contains("[[test]]")
    };
    let untested: Vec<String> = manifests().into_iter().filter(|it| is_untested(&read(it))).collect();
    assert_eq!(untested, ["tests/recipes/Cargo.toml"]);
    for file in files("tests/recipes", &[".rs"]) {
        let text = read(&file);
        assert!(
            !text.contains("#[test]") && !text.contains("tokio::test"),
            "{file} has a test, which never runs"
        );
    }
}

#[test]
fn nothing_is_left_to_be_done_in_the_code() {
    // In two parts, so that this file does not find itself.
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("to", "do!"), concat!("unimple", "mented!")];
    for file in files(".", &[".rs", ".md", ".toml", "run"]) {
        let text = read(&file);
        for mark in marks {
            assert!(
                !text.contains(mark),
                "{file} contains {mark}: do it, or write down as a fact what is missing"
            );
        }
    }
}

#[test]
fn the_stated_compiler_is_the_same_everywhere() {
    let stated = setting("Cargo.toml", "rust-version");
    assert!(!stated.is_empty());
    assert!(read("README.md").contains(&format!("Rust {stated} or later")), "the README states another Rust");
}

#[test]
fn the_protocol_page_has_every_label() {
    let source = read("src/znode/name.rs");
    let page = read("docs/protocol.md");
    let labels: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once("Self(\""))
        .filter_map(|(_, rest)| rest.split('"').next())
        .collect();
    assert!(labels.contains(&"lock-"), "{labels:?}");
    for label in labels {
        assert!(page.contains(&format!("`{label}`")), "docs/protocol.md does not mention `{label}`");
    }
}

#[test]
fn the_failure_model_names_tests_that_exist() {
    let tests: BTreeSet<String> = files(".", &[".rs"])
        .iter()
        .flat_map(|file| {
            let text = read(file);
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            names.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let page = read("docs/failure-model.md");
    let promises = page.lines().filter(|line| {
        let number = line.strip_prefix("| ").and_then(|rest| rest.split(' ').next());
        number.is_some_and(|number| number.parse::<u8>().is_ok())
    });
    let is_name =
        |text: &&str| text.contains('_') && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let mut named = 0;
    for promise in promises {
        let column = promise.rsplit(" | ").next().unwrap();
        for name in quoted(column).filter(is_name) {
            assert!(tests.contains(name), "docs/failure-model.md names `{name}`, which no file has");
            named += 1;
        }
    }
    assert!(named > 0, "the table of promises was not found");
}

#[test]
fn the_page_on_tests_names_tests_that_exist() {
    // Outside of the files it names, a name is a function's or that of a rule in a table.
    let sources: String = files(".", &[".rs"]).iter().map(|file| read(file)).collect();
    let page = read("docs/testing.md");
    let is_name = |text: &&str| {
        text.matches('_').count() > 2 && text.chars().all(|c| c == '_' || c.is_ascii_lowercase())
    };
    let mut named = 0;
    for name in page.lines().flat_map(quoted).filter(is_name) {
        let is_there = sources.contains(&format!("fn {name}(")) || sources.contains(&format!("{name}: "));
        assert!(is_there, "docs/testing.md names `{name}`, which no file has");
        named += 1;
    }
    assert!(named > 50, "only {named} names were found");
}

#[test]
fn the_readme_and_the_failure_model_make_the_same_promises() {
    // The README may leave a part out where its recipe does not exist yet; the sentences it has are the same.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let model = words(&read("docs/failure-model.md"));
    for sentence in [
        "At any time at most one guard of a mutex *is valid by its lease clock*, \
         if clock rates differ by less than 1 %.",
        "In a running process `guard.lost()` resolves, and `guard.is_valid()` turns false, \
         before the server can hand the lock to anyone else.",
        "`guard.txn()` commits writes to ZooKeeper only if the lock node still exists: exact, \
         no clock involved. This holds even when nodes are deleted by hand.",
        "Dropping any future or guard, at any await, leaves no node behind once the manager can reach \
         ZooKeeper, or the session ends.",
        "A crash of a holder frees its locks, and a crash of a waiter its position, \
         after at most the session timeout plus a tick (a leader change starts it anew).",
        "A failed `release` is reported and never reads as released; the janitor keeps trying.",
    ] {
        assert!(model.contains(sentence), "docs/failure-model.md lacks: {sentence}");
        assert!(words(&read("README.md")).contains(sentence), "README.md lacks: {sentence}");
    }
}

#[test]
fn the_page_on_new_recipes_has_the_code_of_its_package() {
    let page = read("docs/new-recipe.md");
    let blocks = |language: &str| -> Vec<&str> {
        let begins = format!("{language}\n");
        page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix(&begins)).collect()
    };
    let manifest = read("tests/outside/Cargo.toml");
    let dependencies = blocks("toml");
    assert_eq!(dependencies.len(), 1);
    assert!(manifest.contains(dependencies[0]), "docs/new-recipe.md has other dependencies: {manifest}");

    // Every block is a part of a file, and together they are the files.
    let mut rest: Vec<(String, String)> =
        files("tests/outside", &[".rs"]).into_iter().map(|file| (read(&file), file)).collect();
    for block in blocks("rust") {
        let file = rest.iter_mut().find(|(text, _)| text.contains(block));
        let (text, _) = file.unwrap_or_else(|| panic!("no file of tests/outside has this:\n{block}"));
        *text = text.replacen(block, "", 1);
    }
    for (text, file) in rest {
        assert_eq!(text.trim(), "", "{file} has what docs/new-recipe.md does not show");
    }
}

/// The targets of a document's links.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchors of a document's headings, as GitHub builds them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let is_heading = |line: &&str| {
        in_code ^= line.starts_with("```");
        !in_code && line.starts_with('#')
    };
    let anchor = |line: &str| {
        let kept = |c: char| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c => c.is_alphanumeric().then_some(c),
        };
        line.trim_start_matches('#').trim().to_lowercase().chars().filter_map(kept).collect()
    };
    text.lines().filter(is_heading).map(anchor).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in files(".", &[".md"]) {
        let text = read(&file);
        let folder = Path::new(&file).parent().unwrap();
        for target in links(&text).filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let page = if path.is_empty() { PathBuf::from(&file) } else { folder.join(path) };
            assert!(root().join(&page).exists(), "{file} links to {target}, which is not there");
            let is_there = anchor.is_empty() || anchors(&read(page.to_str().unwrap())).contains(anchor);
            assert!(is_there, "{file} links to {target}, and that page has no such heading");
        }
    }
}

#[test]
fn every_document_is_found_from_the_readme() {
    let readme = read("README.md");
    let linked: BTreeSet<&str> = links(&readme).filter_map(|target| target.split('#').next()).collect();
    for file in files("docs", &[".md"]) {
        assert!(
            linked.contains(file.as_str()) || file == "docs/SUMMARY.md",
            "README.md has no link to {file}"
        );
    }
}

#[test]
fn the_page_on_operations_has_every_line_of_the_log_from_info_on() {
    let page = read("docs/operations.md");
    let mut lines = 0;
    let folders = ["src", "recipes/src", "redis/src", "tower/src", "fence/src"];
    for file in folders.into_iter().flat_map(|folder| files(folder, &[".rs"])) {
        let text = read(&file);
        for level in ["info!(", "warn!(", "error!("] {
            // A call ends with its message.
            let calls = text.split(level).skip(1).filter_map(|rest| rest.split(");").next());
            for message in calls.filter_map(|call| call.rsplit('"').nth(1)) {
                assert!(
                    page.contains(&format!("`{message}`")),
                    "docs/operations.md lacks `{message}` of {file}"
                );
                lines += 1;
            }
        }
    }
    assert!(lines > 10, "only {lines} lines were found");
}

#[test]
fn ci_runs_the_documented_commands() {
    let script = read(".ci/run");
    let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(commands, [r#"exec "$(dirname "${BASH_SOURCE[0]}")/../tests/run" "$@""#]);
}

#[test]
fn every_input_that_fuzzing_has_kept_has_a_target() {
    let targets = |folder: &str| -> BTreeSet<String> {
        let inputs = files(folder, &[""]).into_iter();
        inputs.filter_map(|file| Some(file.strip_prefix(folder)?.split('/').nth(1)?.to_owned())).collect()
    };
    // Those of tests/fuzz/corpus are the targets: each target without a folder there fails in its crate.
    let (corpus, kept) = (targets("tests/fuzz/corpus"), targets("tests/fuzz/kept"));
    assert!(!kept.is_empty() && corpus.len() > 20, "{corpus:?}");
    assert_eq!(kept.difference(&corpus).collect::<Vec<_>>(), [""; 0], "no test runs these inputs");
}
