//! What the forges show and run: the same tests everywhere, and a changelog that tools can read.

use super::read;

#[test]
fn every_forge_runs_all_tests_on_the_same_image() {
    for workflow in [".github/workflows/tests.yml", ".forgejo/workflows/tests.yml", ".gitlab-ci.yml"] {
        let text = read(workflow);
        assert!(
            text.lines()
                .any(|line| line.trim_start_matches(['-', ' ']).trim_start_matches("run: ") == "tests/run"),
            "{workflow}"
        );
        assert!(text.contains("rust:1-bookworm"), "{workflow} has another image");
    }
}

#[test]
fn every_forge_asks_the_same_of_an_issue() {
    for name in ["problem", "wish"] {
        let (github, gitlab) = (
            read(&format!(".github/ISSUE_TEMPLATE/{name}.md")),
            read(&format!(".gitlab/issue_templates/{name}.md")),
        );
        assert!(github.ends_with(&format!("---\n\n{gitlab}")), "the templates {name}.md differ");
    }
}

#[test]
fn every_heading_of_the_changes_is_one_of_keep_a_changelog() {
    let kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    for heading in read("CHANGELOG.md").lines().filter_map(|line| line.strip_prefix("### ")) {
        let kind = heading.split(':').next().unwrap();
        assert!(kinds.contains(&kind), "CHANGELOG.md: {heading:?} begins with none of {kinds:?}");
    }
}
