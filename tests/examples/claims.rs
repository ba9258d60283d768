//! The claims of the examples, end to end: real processes, on the embedded server and on a real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod program;

use std::path::PathBuf;

use lockkeeper_tests::{Ensemble, Timing, eventually, left_out};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;
use uuid::Uuid;

use self::program::{children, output, program};

/// Those whose sessions last a second, for people who watch them. A busy machine ends such a session.
const BRIEF: [&str; 6] = ["directory", "gateway", "jobs", "leader", "nightly_report", "shards"];

/// The exit code, and the last line.
async fn played(name: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = program(name);
    command.args(arguments);
    if BRIEF.contains(&name) && !arguments.contains(&"--session-timeout") {
        command.args(["--session-timeout", "4"]);
    }
    let output = output(command).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let last =
        text.lines().last().unwrap_or_else(|| panic!("{name} says nothing; on the side it said: {errors}"));
    (output.status.code(), last.to_owned())
}

/// The claim holds, and the last line has `numbers`.
async fn assert_proved(name: &str, arguments: &[&str], numbers: &str) {
    let (code, last) = played(name, arguments).await;
    assert!(last.starts_with("proved: ") && last.contains(numbers), "{name}: {last}");
    assert_eq!(code, Some(0), "{name}: {last}");
}

/// Without what the example is about the claim does not hold, and it says so.
async fn assert_disproved(name: &str, arguments: &[&str], but_for: &str) {
    let (code, last) = played(name, arguments).await;
    assert!(last.starts_with("DISPROVED: ") && !last.contains(but_for), "{name}: {last}");
    assert_eq!(code, Some(1), "{name}: {last}");
}

/// As [`assert_proved`], on a real server, where it leaves nothing behind.
async fn assert_proved_on_a_real_server(name: &str, arguments: &[&str], numbers: &str) {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::shared().await.unwrap();
    // Another test may run the same example there, at the same time.
    let chroot = format!("/{name}-{}", Uuid::new_v4());
    let servers = format!("{}{chroot}", ensemble.connect_string());
    // The server grants sessions this short.
    let connect = ["--connect", &servers, "--session-timeout", "4"];
    assert_proved(name, &[&connect, arguments].concat(), numbers).await;
    let mut oracle = ensemble.raw().await.unwrap();
    let left = oracle.children(&format!("{chroot}/lockkeeper-examples")).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn no_id_is_drawn_twice() {
    assert_proved("id_generator", &[], ", increasing in each, 0 of them drawn before").await;
    assert_proved_on_a_real_server("id_generator", &[], ", increasing in each, 0 of them drawn before").await;
}

#[tokio::test]
async fn without_the_lock_ids_are_drawn_twice() {
    assert_disproved("id_generator", &["--no-lock"], ", 0 of them drawn before").await;
}

#[tokio::test]
async fn no_id_from_blocks_is_drawn_twice() {
    let blocks = ["--blocks", "1000", "--seconds", "1"];
    assert_proved("id_generator", &blocks, ", increasing in each, 0 of them drawn before").await;
    let killed = ["--blocks", "700", "--seconds", "2", "--kill", "2"];
    let numbers = ", increasing in each, 0 of them drawn before";
    assert_proved("id_generator", &killed, numbers).await;
    assert_proved_on_a_real_server("id_generator", &killed, numbers).await;
}

#[tokio::test]
async fn every_addition_counts_once_although_processes_are_killed() {
    let (two, one) = (["--kill", "2", "--seconds", "2"], ["--kill", "1", "--seconds", "1"]);
    assert_proved("scoreboard", &two, " lost=0 doubled=0").await;
    assert_proved_on_a_real_server("scoreboard", &one, " lost=0 doubled=0").await;
    let (code, last) = played("scoreboard", &["--json", "--seconds", "1"]).await;
    assert!(last.starts_with('{') && last.contains("\"lost\":0") && code == Some(0), "{last}");
}

#[tokio::test]
async fn who_reads_a_number_and_writes_the_next_one_loses_additions() {
    assert_disproved("scoreboard", &["--naive", "--seconds", "1"], " lost=0 ").await;
}

#[tokio::test]
async fn every_order_is_done_once_although_processes_are_killed() {
    let numbers = "items=200 done=200 lost=0 doubled=0";
    assert_proved("jobs", &[], numbers).await;
    assert_proved("jobs", &["--kill", "2"], numbers).await;
    assert_proved_on_a_real_server("jobs", &["--kill", "1"], numbers).await;
    let (code, last) = played("jobs", &["--json", "--items", "20"]).await;
    assert!(last.starts_with('{') && last.contains("\"lost\":0") && code == Some(0), "{last}");
}

#[tokio::test]
async fn who_reads_an_order_and_deletes_it_later_does_orders_twice() {
    assert_disproved("jobs", &["--naive"], " doubled=0").await;
}

#[tokio::test]
async fn settings_are_migrated_once_and_each_change_is_applied_once_although_processes_are_killed() {
    let (two, one) = (["--kill", "2", "--seconds", "2"], ["--kill", "1", "--seconds", "1"]);
    assert_proved("settings", &two, " steps=2 lost=0 doubled=0").await;
    assert_proved_on_a_real_server("settings", &one, " steps=2 lost=0 doubled=0").await;
    assert_disproved("settings", &["--naive", "--seconds", "1"], " lost=0 ").await;
}

#[tokio::test]
async fn no_configuration_is_read_half_written() {
    assert_proved("config_cache", &[], " reads, 0 torn, ").await;
    assert_proved_on_a_real_server("config_cache", &[], " reads, 0 torn, ").await;
}

#[tokio::test]
async fn without_the_lock_configurations_are_read_half_written() {
    assert_disproved("config_cache", &["--no-lock"], ", 0 torn, ").await;
}

#[tokio::test]
async fn no_bad_configuration_is_run() {
    let numbers = "12 versions run by 3 processes, 9 kept out, 0 bad ones run";
    assert_proved("live_config", &[], numbers).await;
    assert_proved_on_a_real_server("live_config", &[], numbers).await;
}

#[tokio::test]
async fn without_the_checks_bad_configurations_are_run() {
    assert_disproved("live_config", &["--naive"], ", 0 bad ones run").await;
}

#[tokio::test]
async fn no_money_is_lost_when_processes_are_killed() {
    let numbers = ", 2 processes killed, 4000 in all before and 4000 after";
    assert_proved("transfer", &[], numbers).await;
    assert_proved_on_a_real_server("transfer", &[], numbers).await;
}

#[tokio::test]
async fn without_the_locks_money_is_lost() {
    assert_disproved("transfer", &["--no-lock"], "and 4000 after").await;
}

#[tokio::test]
async fn every_night_is_reported_once_and_late_writes_are_refused() {
    let numbers = " nights reported exactly once; 1 paused, 1 late copies and 1 late reports refused";
    assert_proved("nightly_report", &[], numbers).await;
    assert_proved_on_a_real_server("nightly_report", &[], numbers).await;
}

#[tokio::test]
async fn without_the_token_late_reports_are_taken() {
    assert_disproved("nightly_report", &["--no-fence"], "1 late copies").await;
}

#[tokio::test]
async fn one_process_leads_at_a_time_and_the_next_leads_after_a_kill() {
    for (arguments, result) in [
        (&["--terms", "3"][..], "terms=3 at_once_max=1 kills=0 failover_p50_ms="),
        (&["--terms", "2", "--kill"], "terms=2 at_once_max=1 kills=2 failover_p50_ms="),
        (&["--terms", "2", "--json"], "{\"terms\":2,\"at_once_max\":1,\"kills\":0,\"failover_p50_ms\":"),
    ] {
        let (code, last) = played("leader", arguments).await;
        assert!(last.starts_with(result), "{last}");
        assert_eq!(code, Some(0), "{last}");
    }
}

#[tokio::test]
async fn no_shard_has_two_owners_and_only_what_has_to_move_moves() {
    let (code, last) = played("shards", &["--changes", "2"]).await;
    let numbers: Vec<(&str, &str)> = last.split(' ').filter_map(|number| number.split_once('=')).collect();
    let [("shards", "64"), ("two_owners", "0"), ("moves", moves), ("moves_min", moves_min)] = numbers[..]
    else {
        panic!("{last}");
    };
    assert!(moves.parse::<usize>().unwrap() >= moves_min.parse().unwrap() && moves_min != "0", "{last}");
    assert_eq!(code, Some(0), "{last}");
    if !left_out() {
        let servers = format!("{}/shards", Ensemble::shared().await.unwrap().connect_string());
        let connect = ["--connect", &servers, "--session-timeout", "4", "--changes", "2", "--shards", "32"];
        let (code, last) = played("shards", &connect).await;
        assert!(last.starts_with("shards=32 two_owners=0 moves=") && code == Some(0), "{last}");
    }
    let (code, last) = played("shards", &["--json", "--changes", "1", "--shards", "16"]).await;
    assert!(last.starts_with("{\"shards\":16,\"two_owners\":0,\"moves\":") && code == Some(0), "{last}");
}

#[tokio::test]
async fn no_call_fails_while_processes_of_the_service_are_killed_and_drained() {
    for (arguments, result) in [
        (&[][..], (" failed=0 kills=2 drains=2", "calls=")),
        (
            &["--json", "--kills", "1", "--drains", "1"],
            (",\"failed\":0,\"kills\":1,\"drains\":1}", "{\"calls\":"),
        ),
    ] {
        let (code, last) = played("directory", arguments).await;
        assert!(last.starts_with(result.1) && last.ends_with(result.0), "{last}");
        assert_eq!(code, Some(0), "{last}");
    }
    if !left_out() {
        let servers = format!("{}/directory", Ensemble::shared().await.unwrap().connect_string());
        let connect = ["--connect", &servers, "--session-timeout", "4", "--kills", "1", "--drains", "1"];
        let (code, last) = played("directory", &connect).await;
        assert!(last.starts_with("calls=") && last.ends_with(" failed=0 kills=1 drains=1"), "{last}");
        assert_eq!(code, Some(0), "{last}");
    }
}

#[tokio::test]
async fn a_client_that_reads_the_instances_once_loses_calls() {
    let (code, last) = played("directory", &["--naive", "--kills", "1", "--drains", "1"]).await;
    assert!(last.starts_with("calls=") && !last.contains(" failed=0 "), "{last}");
    assert_eq!(code, Some(1), "{last}");
}

#[tokio::test]
async fn every_order_is_handled_once_and_a_plain_mutex_says_it_would_deadlock() {
    let numbers = "25 of 25 orders reserved and charged once, ";
    assert_proved("reentrant_order", &[], numbers).await;
    assert_proved_on_a_real_server("reentrant_order", &[], "4 of 4 plain mutexes said they would deadlock")
        .await;
}

#[tokio::test]
async fn no_part_is_sold_twice_by_threads_without_async() {
    assert_proved("blocking", &[], "4 threads sold 60 of 60 parts").await;
    assert_proved_on_a_real_server("blocking", &[], "4 threads sold 60 of 60 parts").await;
}

#[tokio::test]
async fn without_the_lock_threads_sell_parts_twice() {
    assert_disproved("blocking", &["--no-lock"], "sold 60 of 60").await;
}

#[tokio::test]
async fn no_call_is_refused_by_a_service_with_a_quota() {
    assert_proved("rate_limited_api", &[], " calls taken and 0 refused (429) ").await;
    assert_proved_on_a_real_server("rate_limited_api", &[], " calls taken and 0 refused (429) ").await;
}

#[tokio::test]
async fn without_the_limiter_calls_are_refused() {
    assert_disproved("rate_limited_api", &["--no-limiter"], " and 0 refused").await;
}

#[tokio::test]
async fn no_customer_of_several_processes_gets_more_than_its_limit_although_one_is_killed() {
    let (code, last) = played("gateway", &[]).await;
    assert!(last.starts_with("calls=") && last.ends_with(" over=0") && code == Some(0), "{last}");
    if !left_out() {
        let servers = format!("{}/gateway", Ensemble::shared().await.unwrap().connect_string());
        let (code, last) = played("gateway", &["--connect", &servers, "--session-timeout", "4"]).await;
        assert!(last.starts_with("calls=") && last.ends_with(" over=0") && code == Some(0), "{last}");
    }
}

#[tokio::test]
async fn processes_that_limit_by_themselves_admit_more_than_the_limit() {
    let (code, last) = played("gateway", &["--naive"]).await;
    assert!(last.starts_with("calls=") && !last.ends_with(" over=0") && code == Some(1), "{last}");
}

#[tokio::test]
async fn what_is_scraped_is_what_was_counted() {
    assert_proved("metrics", &["--seconds", "1"], "3 services scraped; ").await;
    assert_proved_on_a_real_server("metrics", &["--seconds", "1"], "3 services scraped; ").await;
}

#[tokio::test]
async fn an_interrupt_ends_all_processes() {
    // In the instant in which the first, second or third one is being started.
    for count in 1..=3 {
        let mut play = program("id_generator").args(["--seconds", "3600"]).spawn().unwrap();
        let pid = play.id().unwrap();
        let processes = children(pid, count).await;
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::INT).unwrap();
        let status = timeout(Timing::event(), play.wait()).await.expect("it ends").unwrap();
        assert_eq!(status.code(), Some(130));
        for process in processes {
            assert!(!PathBuf::from(format!("/proc/{process}")).exists(), "process {process} is still there");
        }
    }
}

#[tokio::test]
async fn an_interrupt_releases_the_locks_of_threads_and_takes_the_nodes_away() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::shared().await.unwrap();
    let servers = format!("{}/interrupted-threads", ensemble.connect_string());
    let mut command = program("blocking");
    // So many parts that they cannot be sold before the signal.
    command.args(["--connect", &servers, "--session-timeout", "4", "--parts", "10000"]);
    let mut play = command.spawn().unwrap();
    let mut oracle = ensemble.raw().await.unwrap();
    let runs = "/interrupted-threads/lockkeeper-examples";
    let mut is_locked = async || {
        let run = oracle.children(runs).await.ok()?.pop()?;
        let locked = oracle.children(&format!("{runs}/{run}/lock")).await.ok()?;
        (!locked.is_empty()).then_some(())
    };
    let deadline = tokio::time::Instant::now() + Timing::event();
    while is_locked().await.is_none() {
        assert!(tokio::time::Instant::now() < deadline, "no thread locks");
    }

    let pid = Pid::from_raw(play.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = timeout(Timing::event(), play.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(oracle.children(runs).await.unwrap().is_empty());
}

#[tokio::test]
async fn processes_end_when_the_first_one_is_killed() {
    let mut play = program("id_generator").args(["--seconds", "3600"]).spawn().unwrap();
    let processes = children(play.id().unwrap(), 3).await;
    play.kill().await.unwrap();
    let gone = async || {
        let mut processes = processes.iter();
        (!processes.any(|process| PathBuf::from(format!("/proc/{process}/exe")).exists())).then_some(())
    };
    eventually("the end of all processes", Timing::event(), gone).await.unwrap();
}

#[tokio::test]
async fn wrong_input_and_unreachable_servers_have_different_exit_codes() {
    for (arguments, code, said) in [
        (["--processes", "1"], 2, "1 is not in 2..=64"),
        (["--connect", ",:x"], 2, "has a bad address; give host or host:port"),
        (["--connect", "127.0.0.1:1"], 3, "is ZooKeeper running there?"),
    ] {
        let mut command = program("id_generator");
        command.args(arguments);
        let output = output(command).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(said), "{errors}");
    }
}

#[tokio::test]
async fn without_a_redis_one_line_says_what_to_start_before_any_process_is_started() {
    for name in ["ticket_office", "id_generator"] {
        let mut command = program(name);
        command.args(["--engine", "redis", "--redis", "redis://:secret@127.0.0.1:1/"]);
        let output = output(command).await;
        assert_eq!(output.status.code(), Some(3), "{name}");
        let (said, errors) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        assert!(said.is_empty() && errors.lines().count() == 1, "{name}: {errors}");
        assert!(errors.contains("no Redis answers at 127.0.0.1:1/: no connection within "), "{errors}");
        assert!(errors.contains("start one by `redis-server`") && !errors.contains("secret"), "{errors}");
    }
}
