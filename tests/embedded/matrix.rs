//! Every scenario × every request it sends and every event it is sent × everything that can happen there.

use std::env;
use std::time::Duration;

use futures::StreamExt;
use lockkeeper_testserver::Op;

use crate::case::{Case, Kept, record};
use crate::mishap::Mishap;
use crate::scenario::Scenario;
use crate::site::What;

/// How many cases run side by side: most of their time they wait.
const SIDE_BY_SIDE: usize = 12;

/// How often a case is tried whose site was not reached: on a busy machine a session may end by itself before.
const TRIES: usize = 3;

const NOT_REACHED: &str = "the operation ended without coming by there";

async fn holds(scenario: Scenario) {
    let only = env::var("LOCKKEEPER_RING2_CASE").ok();
    let sites = record(scenario).await.unwrap_or_else(|error| panic!("{scenario:?} by itself: {error}"));
    assert!(!sites.is_empty(), "{scenario:?} sends nothing");
    let cases = sites.iter().flat_map(|&site| {
        Mishap::all_at(site).into_iter().map(move |mishap| Case { scenario, site, mishap })
    });
    let cases = cases.filter(|case| !is_left_out(case));
    let cases: Vec<Case> =
        cases.filter(|case| only.as_ref().is_none_or(|only| case.to_string().contains(only))).collect();
    let mut results: Vec<(Case, Result<Kept, String>)> = futures::stream::iter(cases)
        .map(|case| async move { (case, tried(case).await) })
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let all = results.len();
    results.retain(|(case, result)| {
        let is_missed = is_chance(case) && matches!(result, Err(why) if why == NOT_REACHED);
        if is_missed {
            println!("not come by: {case}");
        }
        !is_missed
    });
    // Sites that are hardly ever come by would test nothing.
    let came_about = results.len();
    assert!(
        came_about * 4 >= all * 3 || only.is_some(),
        "{scenario:?}: only {came_about} of {all} cases came about"
    );
    report(scenario, &results);
}

/// Whether chance decides if the site is come by again: whether an event still comes for a watch that is being given up,
/// or a request gives it up; and how often a line is read while recovering. Any other site must be come by.
fn is_chance(case: &Case) -> bool {
    let of_a_watch = !matches!(case.site.what, What::Request(op) if op != Op::RemoveWatches);
    of_a_watch || case.scenario == Scenario::AcquireRecovering
}

/// What is not tried, and why.
fn is_left_out(case: &Case) -> bool {
    match (case.site.what, case.mishap) {
        // The close of a session is refused, or is lost and the session replaced on reconnect: the client does not tell,
        // the shutdown reads as done, and the old session lives until its time is up. ZooKeeper does neither.
        (What::Request(Op::CloseSession), Mishap::Refuse(_) | Mishap::SwapBefore) => true,
        _ => false,
    }
}

async fn tried(case: Case) -> Result<Kept, String> {
    for _ in 0..TRIES {
        // A task of its own, so that a panic is this case's and no other's.
        let run = tokio::spawn(case.run());
        if let Some(kept) = run.await.map_err(|error| error.to_string())?? {
            return Ok(kept);
        }
    }
    Err(NOT_REACHED.to_owned())
}

fn report(scenario: Scenario, results: &[(Case, Result<Kept, String>)]) {
    if env::var("LOCKKEEPER_RING2_TABLE").is_ok_and(|value| value == "1") {
        for (case, result) in results {
            match result {
                Ok(kept) => println!(
                    "{:<60} {:<24} healed in {:.1?}",
                    case.to_string(),
                    kept.said,
                    kept.healed_within
                ),
                Err(error) => println!("{case} FAILED: {error}"),
            }
        }
    }
    let slowest = results.iter().filter_map(|(_, result)| Some(result.as_ref().ok()?.healed_within)).max();
    println!(
        "{scenario:?}: {} cases, healed in {:.1?} at most",
        results.len(),
        slowest.unwrap_or(Duration::ZERO)
    );
    let failed: Vec<String> = results
        .iter()
        .filter_map(|(case, result)| Some((case, result.as_ref().err()?)))
        .map(|(case, error)| {
            format!(
                "{case}: {error}\n    LOCKKEEPER_RING2_CASE='{case}' cargo test -p lockkeeper-tests --test embedded matrix::"
            )
        })
        .collect();
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), results.len(), failed.join("\n"));
}

macro_rules! rules {
    ($($rule:ident: $scenario:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                holds(Scenario::$scenario).await;
            }
        )*
    };
}

rules! {
    an_acquire_that_makes_its_directory_outlives_every_fault: AcquireMakingDirectory,
    an_acquire_outlives_every_fault: AcquireFree,
    an_acquire_that_looks_for_its_node_outlives_every_further_fault: AcquireRecovering,
    a_try_at_a_free_lock_outlives_every_fault: TryFree,
    a_try_at_a_taken_lock_outlives_every_fault: TryTaken,
    a_wait_outlives_every_fault: Wait,
    a_wait_whose_turn_comes_at_the_fault_outlives_it: WaitOvertaken,
    a_wait_that_reconnects_outlives_every_further_fault: WaitReconnecting,
    a_wait_that_is_not_served_in_time_leaves_nothing: WaitTimesOut,
    a_release_outlives_every_fault: Release,
    a_dropped_guard_is_released_through_every_fault: DropGuard,
    a_reentrant_hold_outlives_every_fault: Reentrant,
    a_transaction_is_committed_once_or_not_at_all_through_every_fault: Commit,
    a_hold_is_kept_or_told_lost_through_every_fault: HoldOn,
    a_hold_that_reconnects_is_kept_or_told_lost_through_every_further_fault: HoldReconnecting,
    an_idle_connection_outlives_every_fault: Idle,
    connecting_outlives_every_fault: Connect,
    a_shutdown_outlives_every_fault: Shutdown,
}
