//! The names in the documentation, the dashboard and the alert rules are those of the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lockkeeper::{Mutex, metrics as names};

use crate::connected;
use crate::recorded::recorder;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The names of metrics in a text, without the suffixes of the parts of a histogram.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|of: char| !(of.is_ascii_alphanumeric() || of == '_'));
    let names = words.filter(|word| word.starts_with("lockkeeper_"));
    let base = |name: &str| {
        let ends = ["_bucket", "_sum", "_count"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    // The names of crates, which `tracing` filters by.
    names.map(base).filter(|name| !["lockkeeper_core", "lockkeeper_redis"].contains(&name.as_str())).collect()
}

fn all() -> BTreeSet<String> {
    names::ALL.map(str::to_owned).into()
}

#[tokio::test]
async fn the_page_has_every_metric_and_no_other_and_every_metric_is_described() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    names::describe();
    for name in names::ALL {
        // A metric is shown only after its first record, and only with its own kind and description.
        metrics::counter!(name).increment(0);
        metrics::gauge!(name).increment(0.0);
        metrics::histogram!(name).record(0.0);
    }
    assert_eq!(recorded.described(), all());
    assert_eq!(metrics_in(&page("docs/observability.md")), all());
    // The names in the code are these constants alone.
    assert_eq!(metrics_in(&page("src/telemetry/metrics.rs")), all());
}

#[test]
fn the_dashboard_and_the_alert_rules_use_metrics_that_exist() {
    let dashboard = page("docs/monitoring/dashboard.json");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = parsed["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| panel["targets"][0]["expr"].is_string()), "a panel without a query");
    assert_eq!(metrics_in(&dashboard), all());
    let alerts = metrics_in(&page("docs/monitoring/alerts.yml"));
    assert!(!alerts.is_empty() && alerts.is_subset(&all()), "{alerts:?}");
}

/// The names of the spans that the sources of a crate open.
fn spans_of(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            spans_of(&path, into);
        } else if path.extension().is_some_and(|of| of == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for rest in text.split("debug_span!(").skip(1) {
                into.insert(rest.split('"').nth(1).unwrap().to_owned());
            }
        }
    }
}

#[test]
fn the_page_has_every_span_and_no_other() {
    let page = page("docs/observability.md");
    let section = page.split("\n## Spans\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let named: BTreeSet<String> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let mut opened = BTreeSet::new();
    for folder in ["src", "recipes/src", "redis/src", "lock/src"] {
        spans_of(&repository().join(folder), &mut opened);
    }
    assert_eq!(opened, named);
}

#[tokio::test]
async fn every_counter_and_gauge_is_there_before_its_first_event() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let shown = recorded.series();
    let has = |name: &str| shown.iter().any(|series| series.split(' ').next() == Some(name));
    let by_recipe = [names::WAITING, names::HELD, names::LOST_TOTAL];
    let others =
        names::ALL.into_iter().filter(|name| !name.ends_with("_seconds") && !by_recipe.contains(name));
    for name in others {
        assert!(has(name), "{name} is missing: {shown:?}");
    }
    recorded.becomes(names::CONNECTED, 1.0).await;

    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let lost = "lockkeeper_lost_total recipe=mutex reason=node_deleted";
    assert!(recorded.series().contains(&lost.to_owned()));
    assert_eq!(recorded.value(lost), 0.0);
    drop(guard);

    server.refuse_connections();
    server.drop_connections();
    recorded.becomes(names::CONNECTED, 0.0).await;
    server.accept_connections();
    recorded.becomes(names::CONNECTED, 1.0).await;
    manager.shutdown().await.unwrap();
    recorded.becomes(names::CONNECTED, 0.0).await;
}

#[tokio::test]
async fn commits_are_measured_by_their_results() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    guard.txn().create("/one", "").commit().await.unwrap();
    guard.txn().create("/one", "").commit().await.unwrap_err();
    for _ in 0..2 {
        guard.txn().once("/done/1").commit().await.unwrap();
    }
    assert!(server.delete_node(guard.path()));
    guard.txn().create("/two", "").commit().await.unwrap_err();
    let count = |outcome: &str| recorded.samples(&format!("lockkeeper_txn_seconds outcome={outcome}")).len();
    assert_eq!(["committed", "refused", "before", "lost"].map(count), [2, 1, 1, 1]);
    drop(guard);
    manager.shutdown().await.unwrap();
}
