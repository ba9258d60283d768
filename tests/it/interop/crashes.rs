//! Those who die make way, and no sooner than they may.

use std::process::Stdio;
use std::{env, fs};

use lockkeeper::Mutex;
use lockkeeper_tests::{CuratorPeer, Ensemble, Proxies, Timing, eventually, left_out};
use parking_lot::Mutex as Shared;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::fixture::{InteropFixture, Outcome, SESSION};
use crate::support::connect;

#[tokio::test]
async fn a_killed_java_holder_makes_way_when_its_session_ends() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let fixture = InteropFixture::at("/interop/java-dies").await?;
    let grant = fixture.java.thread("holder").acquire(&fixture.path).await?;
    let mutex = fixture.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire().await });
    fixture.line_of(2).await?;

    fixture.java.kill().await?;
    let guard = waiter.await??;
    let dump = fixture.ensemble.server(0).dump().await?;
    assert!(!dump.sessions.contains(&fixture.java.session()), "granted before the holder's session ended");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn a_java_waiter_that_is_killed_does_not_let_the_next_one_in() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let fixture = InteropFixture::at("/interop/java-waiter-dies").await?;
    let guard = fixture.mutex().acquire().await?;
    let doomed = fixture.java("waiter");
    let doomed = tokio::spawn(async move { doomed.acquire().await.map(drop) });
    fixture.line_of(2).await?;
    let mutex = fixture.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire().await });
    fixture.line_of(3).await?;

    fixture.java.kill().await?;
    assert!(doomed.await?.is_err());
    let line = fixture.line_of(2).await?;
    assert_eq!(line[0], guard.path());
    assert!(guard.is_valid() && !waiter.is_finished());
    guard.release().await?;
    assert_eq!(waiter.await??.path(), line[1]);
    Ok(())
}

#[tokio::test]
async fn a_severed_guard_is_lost_before_java_is_granted() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let fixture = InteropFixture::at("/interop/rust-dies").await?;
    let proxies = Proxies::start(fixture.ensemble).await?;
    let severed = connect(&proxies.connect_string()).await;
    let guard = Mutex::new(&severed, &fixture.path)?.acquire().await?;
    let waiter = fixture.java("waiter");
    let waiter = tokio::spawn(async move { waiter.acquire().await });
    fixture.line_of(2).await?;

    let order = Shared::new(Vec::new());
    let lost = async {
        let lost = guard.lost().await;
        order.lock().push("lost");
        Ok(lost)
    };
    let granted = async {
        let hold = waiter.await?;
        order.lock().push("granted");
        hold
    };
    let session = proxies.sessions()[0].id;
    let expired = async { Ok(proxies.sever_until_expired(session).await?) };
    let (_lost, hold, ()) = tokio::try_join!(lost, granted, expired)?;
    assert_eq!(*order.lock(), ["lost", "granted"]);
    assert!(hold.token() > guard.fencing_token().as_u64());
    assert!(!guard.is_valid());
    assert!(guard.release().await.is_err(), "a release of what was lost says so");
    hold.release().await
}

/// What the victim says before the number of its Java process, among what the test runner says.
const JAVA_IS: &str = "java is ";

/// Not a test: the process that [`a_java_peer_dies_with_the_process_that_started_it`] starts and kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn victim() -> Outcome {
    let Ok(servers) = env::var("LOCKKEEPER_VICTIM_SERVERS") else { return Ok(()) };
    let java = CuratorPeer::start(&servers, SESSION).await?;
    println!("{JAVA_IS}{}", java.pid().await.expect("a process"));
    std::future::pending().await
}

#[tokio::test]
async fn a_java_peer_dies_with_the_process_that_started_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let mut victim = Command::new(env::current_exe()?)
        .args(["--ignored", "--exact", "--nocapture", "interop::crashes::victim"])
        .env("LOCKKEEPER_VICTIM_SERVERS", ensemble.connect_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(victim.stdout.take().expect("its output")).lines();
    let java = loop {
        let line = lines.next_line().await?.expect("the number of the Java process");
        // The runner may have begun the line with the name of the test.
        if let Some((_, java)) = line.split_once(JAVA_IS) {
            break java.to_owned();
        }
    };
    let lives = || {
        // A zombie, which nobody has reaped yet, has no command line.
        fs::read_to_string(format!("/proc/{java}/cmdline")).is_ok_and(|line| line.contains("CuratorPeer"))
    };
    assert!(lives());
    victim.kill().await?;
    eventually("the Java process is gone", Timing::signal(), async || (!lives()).then_some(())).await?;
    Ok(())
}
