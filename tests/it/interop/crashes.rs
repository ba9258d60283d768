//! Holders and waiters that crash: their locks are freed when their sessions end, and not before.

use std::fs;
use std::process::Stdio;

use futures::FutureExt;
use lockkeeper::Mutex;
use lockkeeper_tests::{Ensemble, Proxies, Timing, eventually, left_out};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::fixture::{InteropFixture, Outcome, SESSION};
use crate::support::connect_briefly;

#[tokio::test]
async fn the_lock_of_a_killed_java_holder_is_granted_when_its_session_ends() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/java-dies").await? else {
        return Ok(());
    };
    let grant = fixture.java.thread("holder").acquire(&fixture.path).await?;
    let mutex = fixture.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire().await });
    fixture.queue_of(2).await?;

    fixture.java.kill().await?;
    let guard = waiter.await??;
    let dump = fixture.ensemble.server(0).dump().await?;
    assert!(!dump.sessions.contains(&fixture.java.session()), "granted before the holder's session ended");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn a_killed_java_waiter_does_not_grant_its_successor() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/java-waiter-dies").await? else {
        return Ok(());
    };
    let guard = fixture.mutex().acquire().await?;
    let java = fixture.java("waiter");
    let java = tokio::spawn(async move { java.acquire().await.map(drop) });
    fixture.queue_of(2).await?;
    let mutex = fixture.mutex();
    let waiter = tokio::spawn(async move { mutex.acquire().await });
    fixture.queue_of(3).await?;

    fixture.java.kill().await?;
    assert!(java.await?.is_err());
    let queue = fixture.queue_of(2).await?;
    assert_eq!(queue[0], *guard.path());
    assert!(guard.is_valid() && !waiter.is_finished());
    guard.release().await?;
    assert_eq!(*waiter.await??.path(), queue[1]);
    Ok(())
}

#[tokio::test]
async fn a_severed_guard_is_lost_before_java_is_granted() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rust-dies").await? else {
        return Ok(());
    };
    let proxies = Proxies::start(fixture.ensemble).await?;
    let severed = connect_briefly(&proxies.connect_string()).await;
    let guard = Mutex::new(&severed, &fixture.path)?.acquire().await?;
    let waiter = fixture.java("waiter");
    let waiter = tokio::spawn(async move { waiter.acquire().await });
    fixture.queue_of(2).await?;

    let granted = async {
        let hold = waiter.await?;
        assert!(guard.lost().now_or_never().is_some(), "granted before the loss");
        hold
    };
    let session = proxies.sessions()[0].id;
    let expired = async { Ok(proxies.sever_until_expired(session).await?) };
    let (hold, ()) = tokio::try_join!(granted, expired)?;
    assert!(hold.token() > guard.fencing_token().as_u64());
    assert!(!guard.is_valid());
    assert!(guard.release().await.is_err(), "the release of a lost hold returns the loss");
    hold.release().await
}

#[tokio::test]
async fn a_java_peer_ends_with_the_process_that_started_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let mut parent = Command::new(env!("CARGO_BIN_EXE_contender"))
        .args(["java", &ensemble.connect_string(), &SESSION.as_millis().to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(parent.stdout.take().expect("its output")).lines();
    let java = lines.next_line().await?.expect("the id of the Java process");
    let lives = || {
        // A zombie has no command line.
        fs::read_to_string(format!("/proc/{java}/cmdline")).is_ok_and(|line| line.contains("CuratorPeer"))
    };
    assert!(lives());
    parent.kill().await?;
    eventually("the end of the Java process", Timing::signal(), async || (!lives()).then_some(())).await?;
    Ok(())
}
