//! What a user finds outside of the repository: the packages, their pages, and the site of the documents.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::repository::{links, manifests, setting};
use super::rust::named;
use super::{files, read, root};

/// The manifests of the packages that are published.
fn published() -> Vec<String> {
    let manifests: Vec<String> =
        manifests().into_iter().filter(|manifest| setting(manifest, "publish") != "false").collect();
    assert!(manifests.len() >= 7, "{manifests:?}");
    manifests
}

/// The lines of a manifest's section.
fn section(manifest: &str, name: &str) -> Vec<String> {
    let text = read(manifest);
    let lines = text.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    lines.take_while(|line| !line.starts_with('[')).map(str::to_owned).collect()
}

/// The source of a library's first page, or nothing for a program.
fn front_page(manifest: &str) -> Option<String> {
    let file = manifest.replace("Cargo.toml", "src/lib.rs");
    root().join(&file).exists().then(|| read(&file))
}

#[test]
fn every_published_package_says_what_the_registry_shows() {
    for manifest in published() {
        let text = read(&manifest);
        assert!(text.contains("\nrepository.workspace = true\n"), "{manifest} has an address of its own");
        for key in ["description", "readme", "keywords", "categories"] {
            assert!(!setting(&manifest, key).is_empty(), "{manifest} has no {key}");
        }
        let has_compiler = text.contains("\nrust-version.workspace = true\n");
        let needs_later =
            ["redis/", "cli/", "tests/server/"].iter().any(|folder| manifest.starts_with(folder));
        assert!(has_compiler != needs_later, "{manifest}: docs/versions.md says which Rust it needs");
        let has_pages = !setting(&manifest, "documentation").is_empty();
        assert_eq!(has_pages, front_page(&manifest).is_some(), "{manifest} and docs.rs");
        // The registry takes no more.
        assert!(setting(&manifest, "keywords").matches('"').count() <= 10, "{manifest}: five keywords");
    }
    let addresses = manifests().iter().filter(|manifest| !setting(manifest, "repository").is_empty()).count();
    assert_eq!(addresses, 1, "the address of the repository is in the root's manifest alone");
}

#[test]
fn every_published_package_has_the_texts_of_its_licences() {
    for manifest in published() {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let packed = manifest.replace("Cargo.toml", licence);
            assert_eq!(read(&packed), read(licence), "{packed} is a copy, or a link to the file at the top");
        }
    }
}

#[test]
fn the_pages_of_a_package_show_every_feature_and_mark_its_items() {
    for manifest in published() {
        let Some(page) = front_page(&manifest) else { continue };
        let features: BTreeSet<String> = section(&manifest, "features")
            .iter()
            .filter_map(|line| line.split_once(" = ")?.0.split_whitespace().next().map(str::to_owned))
            .filter(|name| name != "default" && !name.starts_with(['_', '#']))
            .collect();
        if features.is_empty() {
            continue;
        }
        if manifest == "recipes/Cargo.toml" {
            let readme = read("README.md");
            let unnamed: Vec<&String> =
                features.iter().filter(|name| !readme.contains(&format!("`{name}`"))).collect();
            assert_eq!(unnamed, [""; 0], "README.md does not name these features");
        }
        let shown = section(&manifest, "package.metadata.docs.rs").join("\n");
        let names: BTreeSet<String> =
            shown.split('"').skip(1).step_by(2).filter(|name| *name != ", ").map(str::to_owned).collect();
        let has_seam = read(&manifest).contains("\n__");
        assert!(
            names == features || (shown.contains("all-features = true") && !has_seam),
            "{manifest}: docs.rs shows {shown:?}, and the features are {features:?}"
        );
        assert!(page.contains("#![cfg_attr(docsrs, feature(doc_cfg))]"), "{manifest}: features unmarked");
    }
}

#[test]
fn no_page_of_a_package_links_to_a_file_of_the_repository() {
    // On docs.rs there are no files beside the pages.
    for manifest in published() {
        let folder = manifest.replace("Cargo.toml", "src");
        for file in files(&folder, &[".rs"]) {
            let text = read(&file);
            let docs = text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
            for line in docs {
                for target in links(line).filter(|target| target.contains(".md") || target.starts_with('.')) {
                    assert!(target.contains("://"), "{file} links to {target}");
                }
            }
        }
    }
}

#[test]
fn the_site_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let named: Vec<&str> = links(&summary).collect();
    for page in files("docs", &[".md"]) {
        let page = page.trim_start_matches("docs/");
        let times = named.iter().filter(|target| **target == page).count();
        assert_eq!(times, usize::from(page != "SUMMARY.md"), "docs/SUMMARY.md names {page} {times} times");
    }
    // What the pages link to is on the site as well.
    for page in &named {
        let file = root().join("docs").join(page).canonicalize().unwrap();
        for target in links(&fs::read_to_string(&file).unwrap()).filter(|target| !target.contains("://")) {
            let path = target.split('#').next().unwrap();
            if path.ends_with(".md") {
                let linked = file.parent().unwrap().join(path).canonicalize().unwrap();
                let is_there =
                    named.iter().any(|page| root().join("docs").join(page).canonicalize().unwrap() == linked);
                assert!(is_there, "{page} links to {target}, which docs/SUMMARY.md does not name");
            }
        }
    }
}

#[test]
fn every_advisory_that_is_accepted_is_explained_to_users() {
    let rules = read(".deny.toml");
    let ids: Vec<&str> = rules.split('"').filter(|text| text.starts_with("RUSTSEC-")).collect();
    assert!(!ids.is_empty());
    let page = read("SECURITY.md");
    for id in ids {
        assert!(page.contains(&format!("| {id} |")), "SECURITY.md does not explain {id}");
        assert!(page.contains(&format!("{{ id = \"{id}\"")), "SECURITY.md does not say how to accept {id}");
    }
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_benchmarks() {
    let words = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let page = read("docs/benchmarks.md");
    for (load, figure) in [
        ("uncontended, release awaited", "lockkeeper takes {} times as many locks a second as Curator"),
        ("handoff w=100 s=1", "{} times with a hundred waiting tasks"),
    ] {
        let row = page.lines().find(|line| line.starts_with(&format!("| {load} |"))).unwrap();
        let ratio: f64 = row.split("**").nth(1).unwrap().parse().unwrap();
        let sentence = figure.replace("{}", &format!("{ratio:.1}"));
        assert!(words.contains(&sentence), "README.md lacks: {sentence}");
    }
}

#[test]
fn the_readme_names_everything_that_the_first_page_of_the_library_lists() {
    let readme = read("README.md");
    let page = read("recipes/src/lib.rs");
    // The names before a colon, of which a line may have several.
    let listed = page.lines().filter_map(|line| line.strip_prefix("//! * ")).flat_map(|line| {
        let heads = line.split_inclusive(':').filter(|part| part.ends_with("]:"));
        heads.flat_map(|head| head.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
    });
    let listed: BTreeSet<String> = listed.collect();
    assert!(listed.contains("Mutex") && listed.len() > 15, "{listed:?}");
    let is_named = |name: &String| {
        let forms = [format!("`{name}`"), format!("{name}::"), format!("::{name}`")];
        forms.iter().any(|form| readme.contains(form))
    };
    let missing: Vec<&String> = listed.iter().filter(|name| !is_named(name)).collect();
    assert_eq!(missing, [""; 0], "README.md does not name them");
}

#[test]
fn the_oldest_compiler_is_the_same_on_every_page() {
    let stated = setting("Cargo.toml", "rust-version");
    assert!(read("README.md").contains(&format!("badge/Rust-{stated}%2B-")), "the badge states another Rust");
    for page in ["docs/versions.md", "CONTRIBUTING.md"] {
        assert!(read(page).contains(&stated), "{page} states another Rust");
    }
}

#[test]
fn the_install_lines_of_the_readme_resolve() {
    let readme = read("README.md");
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("cargo add ")).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    let folder = tempfile::tempdir().unwrap();
    symlink(root(), folder.path().join("lockkeeper")).unwrap();
    let project = folder.path().join("project");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/main.rs"), "fn main() {}\n").unwrap();
    let manifest = "[workspace]\n[package]\nname = \"project\"\nedition = \"2024\"\n";
    fs::write(project.join("Cargo.toml"), manifest).unwrap();
    // The versions that are on this machine, so that no registry is asked.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    for line in lines.iter().map(|line| line.split('#').next().unwrap()).chain(["cargo metadata"]) {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        let output = command.args(words).arg("--offline").current_dir(&project).output().expect("cargo runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_first_page_of_the_recipes_has_few_names() {
    let names = named(&read("recipes/src/lib.rs")).into_iter().filter_map(|of| of.imported_as).count();
    assert!((20..=60).contains(&names), "{names} names at the root of lockkeeper; the others go in modules");
}
