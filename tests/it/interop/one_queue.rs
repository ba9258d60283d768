//! A holder excludes all contenders, and grants follow the queue, whatever the language.

use std::time::Duration;

use lockkeeper::{Mutex, Owner, ReentrantMutex};
use lockkeeper_tests::{CreateMode, CuratorPeer, Ensemble, left_out};
use tokio::sync::mpsc;

use super::fixture::{InteropFixture, Outcome, SESSION, SHORTLY};
use crate::support::connect;

#[tokio::test]
async fn while_java_holds_we_are_not_granted() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/java-holds").await? else {
        return Ok(());
    };
    let (mutex, thread) = (fixture.mutex(), fixture.java.thread("holder"));
    let reentrant = ReentrantMutex::new(&fixture.manager, &fixture.path)?;
    let grant = thread.acquire(&fixture.path).await?;

    assert!(mutex.try_acquire().await?.is_none());
    assert!(reentrant.try_acquire(&Owner::new("o")).await?.is_none());
    assert!(mutex.acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    assert_eq!(fixture.queue_of(1).await?, [grant.node], "a failed try leaves no node");

    thread.release(&fixture.path).await?;
    let guard = mutex.try_acquire().await?.expect("free");
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn while_we_hold_java_is_not_granted() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/rust-holds").await? else {
        return Ok(());
    };
    let thread = fixture.java.thread("waiter");
    let guard = fixture.mutex().acquire().await?;

    assert_eq!(thread.acquire_timeout(&fixture.path, Duration::ZERO).await?, None);
    assert_eq!(thread.acquire_timeout(&fixture.path, SHORTLY).await?, None);
    assert!(guard.is_valid());
    assert_eq!(fixture.queue_of(1).await?, [guard.path().as_str()]);

    let token = guard.fencing_token().as_u64();
    guard.release().await?;
    let grant = thread.acquire_timeout(&fixture.path, Duration::ZERO).await?.expect("free");
    assert!(grant.czxid > token);
    Ok(())
}

#[tokio::test]
async fn java_and_rust_share_one_queue() -> Outcome {
    for holder_is_java in [true, false] {
        let Some(fixture) =
            InteropFixture::at(&format!("/interop/fifo-behind-java-{holder_is_java}")).await?
        else {
            return Ok(());
        };
        let holder = if holder_is_java { fixture.java("holder") } else { fixture.rust() };
        let mut hold = holder.acquire().await?;
        let (granted, mut grants) = mpsc::unbounded_channel();
        let contenders = [
            fixture.java("a"),
            fixture.rust(),
            fixture.java("b"),
            fixture.rust(),
            fixture.java("c"),
            fixture.rust(),
        ];
        for (position, contender) in contenders.into_iter().enumerate() {
            let granted = granted.clone();
            tokio::spawn(async move { granted.send((position, contender.acquire().await)).ok() });
            fixture.queue_of(position + 2).await?;
        }
        for expected in 0..6 {
            let token = hold.token();
            assert!(grants.is_empty(), "granted while the lock is held");
            hold.release().await?;
            let (position, next) = grants.recv().await.expect("the next grant");
            assert_eq!(position, expected);
            hold = next?;
            assert!(hold.token() > token);
        }
        hold.release().await?;
        fixture.queue_of(0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_reentrant_hold_excludes_the_other_language_until_its_last_release() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/reentrant").await? else {
        return Ok(());
    };
    let mutex = ReentrantMutex::new(&fixture.manager, &fixture.path)?;
    let (owner, thread) = (Owner::new("order 4711"), fixture.java.thread("a"));

    let outer = mutex.acquire(&owner).await?;
    let inner = mutex.acquire(&owner).await?;
    assert_eq!(thread.acquire_timeout(&fixture.path, Duration::ZERO).await?, None);
    inner.release().await?;
    assert_eq!(thread.acquire_timeout(&fixture.path, Duration::ZERO).await?, None);
    let waiter = tokio::spawn({
        let (thread, path) = (thread.clone(), fixture.path.clone());
        async move { thread.acquire(&path).await }
    });
    let queue = fixture.queue_of(2).await?;
    assert!(fixture.java.data(&queue[0]).await?.ends_with("owner=order 4711"));
    outer.release().await?;
    let grant = waiter.await??;
    assert_eq!(grant.node, queue[1]);

    assert_eq!(thread.acquire(&fixture.path).await?, grant, "the same hold");
    thread.release(&fixture.path).await?;
    assert!(mutex.try_acquire(&owner).await?.is_none());
    thread.release(&fixture.path).await?;
    assert!(mutex.try_acquire(&owner).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn below_one_chroot_both_mean_the_same_lock() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    ensemble.raw().await?.create("/interop-chroot", b"", CreateMode::Persistent).await?;
    let servers = format!("{}/interop-chroot", ensemble.connect_string());
    let java = CuratorPeer::start(&servers, SESSION).await?;
    let manager = connect(&servers).await;
    let guard = Mutex::new(&manager, "/lock")?.acquire().await?;
    assert_eq!(java.thread("a").acquire_timeout("/lock", Duration::ZERO).await?, None);
    assert_eq!(java.participants("/lock").await?, [guard.path().as_str()]);
    Ok(())
}
