//! Every scenario × every request it sends and every event it is sent × everything that can happen there.

use std::env;
use std::time::Duration;

use futures::StreamExt;
use lockkeeper_test_recipes::for_each_lock;
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_test_recipes::semaphore::InSemaphoreLayout;

use crate::case::{Case, Outcome, record};
use crate::injected_fault::InjectedFault;
use crate::injection_point::InjectionPoint;
use crate::sample::sampled;
use crate::scenario::{
    Acquire, AcquireMakingDirectory, AcquireRecovering, Admit, Commit, Connect, DoSlot, Downgrade, DropGuard,
    HoldOn, HoldReconnecting, Idle, Initialise, ReadUnderWrite, Reenter, Release, Scenario, Shutdown,
    TryFree, TryTaken, Upgrade, Wait, WaitBehindTwo, WaitOvertaken, WaitReconnecting, WaitTimesOut,
};

/// How many cases run side by side: most of their time they wait.
const SIDE_BY_SIDE: usize = 24;

/// How often a scenario is recorded, as many at a time as there are cases. An injection point counts only
/// if all recordings have it: whether an event still arrives for a watch that is being given up, for example,
/// is a matter of chance.
const RECORDINGS: usize = 12;

/// How often a case is tried until it reaches its injection point and nothing else disturbs it.
const TRIES: usize = 10;

/// How often the cases that miss their injection points are recorded again, and tried once more.
const ROUNDS: usize = 10;

async fn recorded<S: Scenario>(scenario: S) -> Vec<InjectionPoint> {
    let one = |_| async move {
        for _ in 0..TRIES {
            if let Some(injection_points) = record(scenario).await? {
                return Ok(injection_points);
            }
        }
        Err("its link breaks each time".to_owned())
    };
    let recordings = futures::future::try_join_all((0..RECORDINGS).map(one)).await;
    let mut recordings =
        recordings.unwrap_or_else(|error: String| panic!("{scenario:?} by itself: {error}")).into_iter();
    let mut injection_points = recordings.next().unwrap_or_default();
    for another in recordings {
        injection_points.retain(|injection_point| another.contains(injection_point));
    }
    assert!(!injection_points.is_empty(), "{scenario:?} sends nothing");
    injection_points
}

async fn holds<S: Scenario>(scenario: S) {
    let only = env::var("LOCKKEEPER_RING2_CASE").ok();
    let injection_points = recorded(scenario).await;
    let cases = injection_points.iter().flat_map(|injection_point| {
        InjectedFault::all_at(injection_point).into_iter().map(move |injected_fault| Case {
            scenario,
            injection_point: injection_point.clone(),
            injected_fault,
        })
    });
    let mut cases: Vec<Case<S>> = match only {
        Some(only) => cases.filter(|case| case.to_string().contains(&only)).collect(),
        None => sampled(cases.collect()),
    };
    let mut results = Vec::new();
    for round in 1..=ROUNDS {
        let tried: Vec<_> = futures::stream::iter(cases)
            .map(|case| async move { (case.clone(), tried(case).await) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect()
            .await;
        let (missed, ended): (Vec<_>, Vec<_>) =
            tried.into_iter().partition(|(_, result)| matches!(result, Ok(Outcome::Missed)));
        results.extend(ended);
        if missed.is_empty() || round == ROUNDS {
            results.extend(missed);
            break;
        }
        // If the load of the machine has changed since the recordings, new ones do not have the injection
        // point either.
        let still = recorded(scenario).await;
        cases = missed.into_iter().map(|(case, _)| case).collect();
        cases.retain(|case| still.contains(&case.injection_point));
    }
    report(scenario, &results);
}

/// The outcome of the last try.
async fn tried<S: Scenario>(case: Case<S>) -> Result<Outcome, String> {
    let mut outcome = Outcome::Missed;
    for _ in 0..TRIES {
        // A task of its own, so that a panic is this case's and no other's.
        let run = tokio::spawn(case.clone().run());
        outcome = run.await.map_err(|error| error.to_string())??;
        if matches!(outcome, Outcome::Passed(_)) {
            break;
        }
    }
    Ok(outcome)
}

fn report<S: Scenario>(scenario: S, results: &[(Case<S>, Result<Outcome, String>)]) {
    let has_table = env::var("LOCKKEEPER_RING2_TABLE").is_ok_and(|value| value == "1");
    let (mut missed, mut failed, mut slowest) = (Vec::new(), Vec::new(), Duration::ZERO);
    for (case, result) in results {
        match result {
            Ok(Outcome::Passed(kept)) => {
                slowest = slowest.max(kept.healed_within);
                if has_table {
                    println!(
                        "{:<60} {:<24} healed in {:.1?}",
                        case.to_string(),
                        kept.said,
                        kept.healed_within
                    );
                }
            }
            Ok(Outcome::Missed) => missed.push(case.to_string()),
            Ok(Outcome::Disturbed(error)) | Err(error) => failed.push(format!(
                "{case}: {error}\n    LOCKKEEPER_RING2_CASE='{case}' \
                 cargo test -p lockkeeper-tests --test embedded matrix::"
            )),
        }
    }
    println!("{scenario:?}: {} cases, healed in {slowest:.1?} at most", results.len());
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), results.len(), failed.join("\n"));
    assert!(missed.is_empty(), "{} ended before their injection points: {}", missed.len(), missed.join(", "));
}

macro_rules! rules {
    ($($rule:ident: $scenario:expr,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                holds($scenario).await;
            }
        )*
    };
}

/// What every lock has to outlive.
macro_rules! recipes {
    ($($name:ident: $adapter:expr,)*) => {
        $(
            mod $name {
                use super::*;

                rules! {
                    an_acquire_that_makes_its_directory_outlives_every_fault: AcquireMakingDirectory(
                        $adapter
                    ),
                    an_acquire_outlives_every_fault: Acquire($adapter),
                    an_acquire_that_looks_for_its_node_outlives_every_further_fault: AcquireRecovering(
                        $adapter
                    ),
                    a_try_at_a_free_lock_outlives_every_fault: TryFree($adapter),
                    a_try_at_a_taken_lock_outlives_every_fault: TryTaken($adapter),
                    a_wait_outlives_every_fault: Wait($adapter),
                    a_wait_whose_turn_comes_at_the_fault_outlives_it: WaitOvertaken($adapter),
                    a_wait_that_reconnects_outlives_every_further_fault: WaitReconnecting($adapter),
                    a_wait_that_is_not_served_in_time_leaves_nothing: WaitTimesOut($adapter),
                    a_release_outlives_every_fault: Release($adapter),
                    a_dropped_guard_is_released_through_every_fault: DropGuard($adapter),
                    a_transaction_is_committed_once_or_not_at_all_through_every_fault: Commit($adapter),
                    a_hold_is_kept_or_told_lost_through_every_fault: HoldOn($adapter),
                    a_hold_that_reconnects_is_kept_or_told_lost_through_every_further_fault: HoldReconnecting(
                        $adapter
                    ),
                }
            }
        )*
    };
}

for_each_lock!(recipes);

// What one recipe alone can do, and what is done with a connection.
rules! {
    a_reentrant_hold_outlives_every_fault: Reenter,
    a_wait_behind_two_outlives_every_fault: WaitBehindTwo(&Plain),
    a_wait_for_permits_behind_two_outlives_every_fault: WaitBehindTwo(&InSemaphoreLayout),
    a_downgrade_outlives_every_fault: Downgrade,
    a_read_under_a_write_outlives_every_fault: ReadUnderWrite,
    a_try_to_upgrade_outlives_every_fault: Upgrade,
    an_admission_outlives_every_fault: Admit,
    a_slot_is_done_with_its_write_or_not_at_all_through_every_fault: DoSlot,
    a_value_is_initialised_through_every_fault: Initialise,
    an_idle_connection_outlives_every_fault: Idle,
    connecting_outlives_every_fault: Connect,
    a_shutdown_outlives_every_fault: Shutdown,
}
