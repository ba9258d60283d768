//! Unit tests are run: `tests/run` names the programs that have some, and excludes libraries without.

use super::repository::manifests;
use super::{read, root};

/// A library or a program of a package.
#[derive(Debug)]
struct Target {
    package: String,
    /// That of the program.
    name: Option<String>,
    source: String,
    /// Not `test = false`.
    is_tested: bool,
}

/// What a manifest names, and what cargo finds without it.
fn targets(manifest: &str) -> Vec<Target> {
    let text = read(manifest);
    let folder = manifest.strip_suffix("Cargo.toml").unwrap();
    let value = |lines: &[&str], key: &str| {
        let value = lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let lines: Vec<&str> = text.lines().collect();
    let package = value(&lines, "name").unwrap();
    let mut targets = Vec::new();
    for section in lines.chunk_by(|_, next| !next.starts_with('[')) {
        let is_library = section.first() == Some(&"[lib]");
        if is_library || section.first() == Some(&"[[bin]]") {
            let default = if is_library { "src/lib.rs" } else { "src/main.rs" };
            let path = value(section, "path").unwrap_or_else(|| default.to_owned());
            targets.push(Target {
                package: package.clone(),
                name: value(section, "name").filter(|_| !is_library),
                source: format!("{folder}{path}"),
                is_tested: value(section, "test").as_deref() != Some("false"),
            });
        }
    }
    for (file, name) in [("src/lib.rs", None), ("src/main.rs", Some(package.clone()))] {
        let source = format!("{folder}{file}");
        if root().join(&source).exists() && targets.iter().all(|target| target.source != source) {
            targets.push(Target { package: package.clone(), name, source, is_tested: true });
        }
    }
    targets
}

/// Whether the file or a module of it has a test.
fn has_tests(source: &str) -> bool {
    let text = read(source);
    if text.contains("#[test]") || text.contains("#[tokio::test") || text.contains("proptest! {") {
        return true;
    }
    let (folder, file) = source.rsplit_once('/').unwrap();
    let stem = file.strip_suffix(".rs").unwrap();
    let below =
        if ["lib", "main", "mod"].contains(&stem) { folder.to_owned() } else { format!("{folder}/{stem}") };
    let modules = text.lines().filter_map(|line| line.trim_start().strip_suffix(';')?.split_once("mod "));
    modules.map(|(_, name)| name).any(|name| {
        let files = [format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")];
        files.iter().any(|file| root().join(file).exists() && has_tests(file))
    })
}

#[test]
fn every_library_and_program_with_unit_tests_is_run() {
    let script = read("tests/run");
    let (_, behind) = script.split_once("\npure=(").unwrap();
    let (named, _) = behind.split_once("\n\n").unwrap_or((behind, ""));
    let words: Vec<&str> = named.split(|c: char| c.is_whitespace() || "()".contains(c)).collect();
    let has = |option: &str, value: &str| words.windows(2).any(|pair| pair == [option, value]);
    let targets: Vec<Target> = manifests().iter().flat_map(|manifest| targets(manifest)).collect();
    let is_run = |target: &Target| match &target.name {
        Some(name) => target.is_tested && has("--bin", name),
        None => target.is_tested && !has("--exclude", &target.package),
    };
    let with_tests: Vec<&Target> = targets.iter().filter(|target| has_tests(&target.source)).collect();
    assert!(with_tests.len() >= 16 && targets.len() > with_tests.len() + 6, "{with_tests:#?}");
    for target in with_tests {
        assert!(is_run(target), "its unit tests are not run, see `pure` in tests/run: {target:?}");
    }
}
