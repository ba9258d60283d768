//! A command that waits for the lock, or does not get it.

use std::time::Duration;

use lockkeeper_tests::Timing;
use lockkeeper_testserver::TestServer;

use crate::fixture::Fixture;

/// The exit code when no server answers in time.
const UNAVAILABLE: i32 = 69;

#[tokio::test]
async fn the_time_to_wait_bounds_the_wait_for_a_server_as_well() {
    let fixture = Fixture::at("127.0.0.1:1");
    for subcommand in [&["lock", "/wait/server"][..], &["once", "/wait/server"]] {
        let bounds = ["--connect-timeout", "1h", "--timeout", "100ms", "--", "true"];
        let ended = fixture.ended([subcommand, &bounds].concat()).await;
        assert_eq!(ended.code, Some(UNAVAILABLE), "{ended:?}");
    }
}

/// A job of cron that mails whatever it prints.
#[tokio::test]
async fn quiet_says_nothing_of_a_lock_that_is_not_got_and_still_says_an_error() {
    let fixture = Fixture::embedded().await;
    let mut holder = fixture.start(["lock", "/wait/quiet", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    for limit in [&["--try"][..], &["--timeout", "3s"], &["--try", "-E", "0"]] {
        let ended =
            fixture.ended([&["lock", "/wait/quiet", "--quiet"], limit, &["--", "true"]].concat()).await;
        let code = if limit.len() == 3 { 0 } else { 75 };
        assert_eq!((ended.code, ended.messages.as_str()), (Some(code), ""), "{limit:?}: {ended:?}");
    }
    holder.ended().await;
    let none = Fixture::at("127.0.0.1:1");
    let ended = none.ended(["lock", "/wait/quiet", "-q", "--timeout", "100ms", "--", "true"]).await;
    assert_eq!((ended.code, ended.messages.lines().count()), (Some(UNAVAILABLE), 1), "{ended:?}");
}

#[tokio::test]
async fn a_lock_that_is_not_got_in_time_ends_with_75_or_the_given_code() {
    for fixture in Fixture::both().await {
        let mut holder = fixture.start(["lock", "/wait/late", "--", "sh", "-c", "echo held; read line"]);
        holder.until("held").await;
        let arguments = |limit: Duration| {
            let (with_unit, seconds) = (format!("{}ms", limit.as_millis()), limit.as_secs_f64().to_string());
            [
                (vec!["--try".to_owned()], 75),
                (vec!["--timeout".to_owned(), with_unit], 75),
                (vec!["--timeout".to_owned(), seconds, "-E".to_owned(), "9".to_owned()], 9),
                (["--try", "-E", "0"].map(str::to_owned).to_vec(), 0),
            ]
        };
        let start = |options: &[String]| {
            let options = options.iter().map(String::as_str);
            fixture.start(["lock", "/wait/late"].into_iter().chain(options).chain(["--", "echo", "ran"]))
        };
        let limit = Timing::scaled(Duration::from_secs(3));
        // Beside each other, so that the test takes no longer than one of them.
        let started = arguments(limit).map(|(options, code)| (start(&options), code));
        for (number, (waiter, code)) in started.into_iter().enumerate() {
            let mut ended = waiter.ended().await;
            // On a busy machine the server may not answer in time, which is another phase of the wait.
            for longer in [2, 4].map(|times| limit * times) {
                if ended.code == Some(UNAVAILABLE) {
                    ended = start(&arguments(longer)[number].0).ended().await;
                }
            }
            assert_eq!((ended.code, ended.output.as_str()), (Some(code), ""), "{ended:?}");
            assert_eq!(ended.messages.lines().count(), 1, "{ended:?}");
        }
        fixture.contenders("/wait/late", 1).await;
        holder.ended().await;
    }
}

#[tokio::test]
async fn an_attempt_names_the_holder_of_a_lock_that_is_not_free() {
    for fixture in Fixture::both().await {
        let script = "echo held; read line";
        let mut holder = fixture.start(["lock", "/wait/named", "--", "sh", "-c", script]);
        holder.until("held").await;
        let mut pool = fixture.start(["semaphore", "-n", "1", "/wait/pool", "--", "sh", "-c", script]);
        pool.until("held").await;
        let named = format!("pid={} owner=sh[{}] holds  [0x", holder.pid(), holder.pid());
        for attempt in [&["lock", "/wait/named"][..], &["multi", "/wait/a-free-one", "/wait/named"]] {
            let ended = fixture.ended([attempt, &["--try", "--", "true"]].concat()).await;
            assert_eq!(ended.code, Some(75), "{ended:?}");
            assert!(ended.messages.contains("/wait/named is not free: host="), "{ended:?}");
            assert!(ended.messages.contains(&named), "{ended:?}");
        }
        let ended = fixture.ended(["semaphore", "-n", "1", "/wait/pool", "--try", "--", "true"]).await;
        assert!(ended.messages.contains(&format!("pid={}", pool.pid())), "{ended:?}");
        holder.ended().await;
        pool.ended().await;
    }
}

#[tokio::test]
async fn a_wait_behind_a_dead_link_names_no_contender() {
    let fixture = Fixture::embedded().await;
    let mut holder = fixture.start(["lock", "/wait/dead", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    let server = fixture.embedded.as_ref().unwrap();
    let mut last = None;
    // On a busy machine the time may be over before the link is dead.
    for limit in ["8s", "16s"] {
        let waiter = fixture.start(["lock", "/wait/dead", "--timeout", limit, "--", "true"]);
        let mut until_free = fixture.start(["-v", "wait", "/wait/dead", "--timeout", limit]);
        until_free.message().await;
        fixture.contenders("/wait/dead", 2).await;
        server.freeze();
        let ended = waiter.ended().await;
        let wait_ended = until_free.ended().await;
        server.thaw();
        let is_dead =
            [&ended, &wait_ended].iter().all(|it| it.messages.contains("no server answers any more"));
        last = Some((ended, wait_ended));
        if is_dead {
            break;
        }
        fixture.contenders("/wait/dead", 1).await;
    }
    let (lock, wait) = last.unwrap();
    for ended in [lock, wait] {
        assert_eq!(ended.code, Some(UNAVAILABLE), "{ended:?}");
        assert!(ended.messages.contains("no server answers any more"), "{ended:?}");
        assert!(!ended.messages.contains("pid="), "{ended:?}");
    }
    holder.ended().await;
}

/// The lease rests on the servers' tick, and a session timeout that they changed shows it.
#[tokio::test]
async fn a_session_timeout_that_the_servers_raise_is_said_with_their_tick() {
    let tick = Duration::from_secs(2);
    let server = TestServer::builder().tick(tick).start().await.unwrap();
    let at = |session_timeout, tick_time| Fixture {
        session_timeout,
        tick_time,
        ..Fixture::at(&server.connect_string())
    };
    for (session_timeout, tick_time, expected) in [
        ("2s", "1s", "a session timeout of 4s instead of 2s: their tickTime seems to be 2s"),
        ("3s", "1500ms", "give --tick-time 2s"),
        ("20s", "2s", ""),
    ] {
        let ended = at(session_timeout, tick_time).ended(["lock", "/wait/tick", "--", "true"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let is_said = match expected {
            "" => ended.messages.is_empty(),
            expected => ended.messages.contains(expected),
        };
        assert!(is_said, "{ended:?}");
    }
}

#[tokio::test]
async fn a_signal_to_a_waiting_command_leaves_the_queue() {
    for fixture in Fixture::both().await {
        let mut holder = fixture.start(["lock", "/wait/signal", "--", "sh", "-c", "echo held; read line"]);
        holder.until("held").await;
        for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)]
        {
            let waiter = fixture.start(["lock", "/wait/signal", "--", "echo", "ran"]);
            fixture.contenders("/wait/signal", 2).await;
            waiter.signal(name);
            let ended = waiter.ended().await;
            assert_eq!((ended.code, ended.output.as_str()), (Some(128 + number), ""), "{name}: {ended:?}");
            fixture.contenders("/wait/signal", 1).await;
        }
        holder.ended().await;
    }
}

#[tokio::test]
async fn without_a_server_one_line_says_so_and_the_code_is_69() {
    let fixture = Fixture::at("127.0.0.1:1");
    let ended = fixture.ended(["--connect-timeout", "200ms", "lock", "/wait/none", "--", "true"]).await;
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert_eq!(ended.messages.lines().count(), 1, "{ended:?}");
    assert!(ended.messages.starts_with("lockkeeper: no server is reachable"), "{ended:?}");
}

#[tokio::test]
async fn a_signal_ends_a_command_that_waits_for_a_server() {
    let fixture = Fixture::at("127.0.0.1:1");
    let running = fixture.start(["--connect-timeout", "1h", "lock", "/wait/none", "--", "true"]);
    crate::processes::supervisor_of(running.pid()).await;
    running.signal("TERM");
    assert_eq!(running.ended().await.code, Some(128 + 15));
}

#[tokio::test]
async fn a_grace_that_the_session_timeout_does_not_allow_is_a_wrong_usage() {
    let fixture = Fixture::embedded().await.brief();
    let ended = fixture.ended(["lock", "/wait/grace", "--grace", "2s", "--", "echo", "ran"]).await;
    assert_eq!((ended.code, ended.output.as_str()), (Some(64), ""), "{ended:?}");
    assert!(ended.messages.contains("--session-timeout"), "{ended:?}");
}
