//! The names in the documentation, the dashboard and the alert rules are those of the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lockkeeper::{Mutex, metrics as names};
use lockkeeper_testserver::{Fault, Op, When};
use lockkeeper_tower::metrics as layer_names;

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
    names
        .map(base)
        .filter(|name| !["lockkeeper_core", "lockkeeper_redis", "lockkeeper_tower"].contains(&name.as_str()))
        .collect()
}

/// Of the library and of the layers.
fn all() -> BTreeSet<String> {
    names::ALL.into_iter().chain(layer_names::ALL).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_has_every_metric_and_no_other_and_every_metric_is_described() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    names::describe();
    layer_names::describe();
    for name in all() {
        // A metric is shown only after its first record, and only with its own kind and description.
        metrics::counter!(name.clone()).increment(0);
        metrics::gauge!(name.clone()).increment(0.0);
        metrics::histogram!(name).record(0.0);
    }
    assert_eq!(recorded.described(), all());
    assert_eq!(metrics_in(&page("docs/observability.md")), all());
    // The names in the code are these constants alone.
    let modules = ["src/telemetry/metrics.rs", "tower/src/metrics.rs"].map(page).concat();
    assert_eq!(metrics_in(&modules), all());
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

#[test]
fn a_panel_shows_the_chosen_instances_in_one_unit() {
    let dashboard: serde_json::Value = serde_json::from_str(&page("docs/monitoring/dashboard.json")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        let queries: Vec<&str> = targets.iter().map(|target| target["expr"].as_str().unwrap()).collect();
        for query in &queries {
            assert!(query.contains(r#"instance=~"$instance""#), "{query}");
            assert!(!query.contains("rate(") || query.contains("[$__rate_interval]"), "{query}");
        }
        // Each of the ways to count gives another unit.
        let kinds = queries.iter().map(|query| (query.contains("quantile"), query.starts_with("60 * ")));
        assert_eq!(kinds.collect::<BTreeSet<_>>().len(), 1, "{queries:?}");
    }
}

#[test]
fn each_alert_rule_has_its_section_in_the_runbook() {
    // The second file is for the metrics of the command, whose own test knows them.
    let files = ["docs/monitoring/alerts.yml", "docs/monitoring/check.yml"];
    let (alerts, runbook) = (files.map(page).concat(), page("docs/runbook.md"));
    let names: Vec<&str> =
        alerts.split("- alert: ").skip(1).map(|rule| rule.lines().next().unwrap()).collect();
    let sections: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(names, sections);
    for name in names {
        let anchor = format!("/docs/runbook.md#{}\"", name.to_lowercase());
        assert!(between(&alerts, &format!("alert: {name}\n"), "action:").contains(&anchor), "{name}");
    }
}

/// Calls `with` with the text of each source of a crate.
fn for_each_source(folder: &Path, with: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            for_each_source(&path, with);
        } else if path.extension().is_some_and(|of| of == "rs") {
            with(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names of the spans that a source opens.
fn spans_in(source: &str) -> Vec<String> {
    let opened = source.split("debug_span!(").skip(1);
    let attributes = source.split("#[instrument(").skip(1).map(|rest| between(rest, "name = ", ")]"));
    opened.chain(attributes).map(|rest| rest.split('"').nth(1).unwrap().to_owned()).collect()
}

/// The part of a text between two others.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split(begin).nth(1).unwrap().split(end).next().unwrap()
}

/// The words of a text that are marked as code.
fn code_in(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_has_every_span_and_no_other() {
    let page_of_spans = page("docs/observability.md");
    let rows =
        between(&page_of_spans, "\n## Spans\n", "\n## ").lines().filter(|line| line.starts_with("| `"));
    let named: BTreeSet<String> = rows.filter_map(|row| row.split('|').nth(1)).flat_map(code_in).collect();
    let mut opened = BTreeSet::new();
    for folder in ["src", "recipes/src", "redis/src", "lock/src", "tower/src"] {
        for_each_source(&repository().join(folder), &mut |source| opened.extend(spans_in(source)));
    }
    assert_eq!(opened, named);
    let operations = page("docs/operations.md");
    let of_locks = code_in(between(&operations, " The spans ", " name the lock or node"));
    assert!(!of_locks.is_empty() && of_locks.is_subset(&opened), "{of_locks:?}");
}

#[test]
fn the_page_and_the_module_have_the_same_recipes_and_every_name_that_a_recipe_sets() {
    let (page, module) = (page("docs/observability.md"), page("src/telemetry/metrics.rs"));
    let recipes = |text: &str| code_in(between(text, "* `recipe`: ", "name that the author"));
    assert_eq!(recipes(&page), recipes(&module));
    let mut set = BTreeSet::new();
    for_each_source(&repository().join("recipes/src"), &mut |text| {
        let names = text.split("with_metric_name(\"").skip(1).filter_map(|rest| rest.split('"').next());
        set.extend(names.map(str::to_owned));
    });
    assert!(set.len() > 5 && set.is_subset(&recipes(&page)), "{set:?}");
}

#[tokio::test]
async fn every_counter_and_gauge_is_there_before_its_first_event() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let shown = recorded.series();
    let has = |name: &str| shown.iter().any(|series| series.split(' ').next() == Some(name));
    let by_recipe = [names::WAITING, names::HELD, names::LOST_TOTAL];
    for reason in ["session_expired", "no_answer", "session_replaced", "lease_ran_out", "auth_failed"] {
        let series = format!("lockkeeper_sessions_expired_total reason={reason}");
        assert!(shown.contains(&series), "{series} is missing: {shown:?}");
    }
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

/// The expression of an alert rule.
fn rule(alert: &str) -> String {
    let alerts = page("docs/monitoring/alerts.yml");
    between(&alerts, &format!("alert: {alert}\n"), "\n        labels").to_owned()
}

#[tokio::test]
async fn a_manager_without_a_session_is_seen_beside_one_that_has_a_session_and_until_it_is_shut_down() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    assert!(rule("LockkeeperDisconnected").contains(names::DISCONNECTED));
    let ((server, cut_off), (_other, _whole)) = (connected().await, connected().await);
    recorded.becomes(names::DISCONNECTED, 0.0).await;
    server.refuse_connections();
    server.drop_connections();
    recorded.becomes(names::DISCONNECTED, 1.0).await;
    assert_eq!(recorded.value(names::CONNECTED), 1.0);
    server.accept_connections();
    recorded.becomes(names::DISCONNECTED, 0.0).await;
    server.refuse_connections();
    server.drop_connections();
    recorded.becomes(names::DISCONNECTED, 1.0).await;
    drop(cut_off);
    recorded.becomes(names::DISCONNECTED, 0.0).await;
}

#[tokio::test]
async fn the_first_commit_without_an_answer_is_an_increase_of_the_counter_of_its_alert() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    assert!(rule("LockkeeperCommitsUnknown").contains(names::TXN_UNKNOWN_TOTAL));
    let (server, manager) = connected().await;
    assert!(recorded.series().contains(&names::TXN_UNKNOWN_TOTAL.to_owned()));
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    let _cut = server.fault(When::op(Op::Multi).path("/one"), Fault::DropConnectionAfter);
    assert!(guard.txn().create("/one", "").commit().await.unwrap_err().outcome_unknown());
    assert_eq!(recorded.value(names::TXN_UNKNOWN_TOTAL), 1.0);
    assert_eq!(recorded.samples("lockkeeper_txn_seconds outcome=unknown").len(), 1);
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
