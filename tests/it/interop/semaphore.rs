//! One semaphore, whatever the language.

use std::time::Duration;

use lockkeeper::locks::SharedLimit;
use lockkeeper::{Mutex, Semaphore};

use super::fixture::{InteropFixture, Outcome, SHORTLY};
use crate::support::nodes_become;

async fn settled(fixture: &InteropFixture, leases: usize, queue_nodes: usize) {
    nodes_become(fixture.ensemble, &format!("{}/leases", fixture.path), leases).await;
    nodes_become(fixture.ensemble, &format!("{}/locks", fixture.path), queue_nodes).await;
}

#[tokio::test]
async fn java_and_rust_share_the_permits_of_one_semaphore() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/permits").await? else {
        return Ok(());
    };
    let (path, thread) = (fixture.path.as_str(), fixture.java.thread("a"));
    let semaphore = Semaphore::new(&fixture.manager, path, 3)?;

    let ours = semaphore.acquire_many(2).await?;
    let theirs = thread.permits(path, "3", 1, None).await?.expect("one is free");
    assert_eq!(thread.permits(path, "3", 1, Some(SHORTLY)).await?, None);
    assert!(semaphore.try_acquire().await?.is_none());
    assert!(semaphore.acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    let seen = semaphore.inspect().await?;
    let out: Vec<String> = seen.holders().map(|lease| lease.name().to_owned()).collect();
    assert_eq!(out.len(), 3);
    assert!(out.contains(&theirs[0]), "{theirs:?} among {out:?}");
    ours.release().await?;
    let theirs = thread.permits(path, "3", 2, None).await?.expect("two are free");
    assert_eq!(theirs.len(), 2);
    assert_eq!(semaphore.available().await?, 0);
    thread.return_permits(path, 3).await?;
    semaphore.acquire_many(3).await?.release().await?;
    settled(&fixture, 0, 0).await;
    Ok(())
}

#[tokio::test]
async fn java_and_rust_wait_for_permits_in_one_queue() -> Outcome {
    for java_is_first in [true, false] {
        let Some(fixture) = InteropFixture::at(&format!("/interop/permits-fifo-{java_is_first}")).await?
        else {
            return Ok(());
        };
        let path = fixture.path.clone();
        let (locks, leases) = (format!("{path}/locks"), format!("{path}/leases"));
        let semaphore = Semaphore::new(&fixture.manager, path.as_str(), 2)?;
        let held = semaphore.acquire_many(2).await?;
        let (granted, mut grants) = tokio::sync::mpsc::unbounded_channel();
        for place in 0..4 {
            let (granted, path, semaphore) = (granted.clone(), path.clone(), semaphore.clone());
            let thread = fixture.java.thread(&format!("t{place}"));
            let is_java = (place % 2 == 0) == java_is_first;
            tokio::spawn(async move {
                if is_java {
                    thread.permits(&path, "2", 1, None).await.unwrap().expect("a permit");
                    granted.send(place).unwrap();
                    thread.return_permits(&path, 1).await.unwrap();
                } else {
                    let lease = semaphore.acquire_many(2).await.unwrap();
                    granted.send(place).unwrap();
                    lease.release().await.unwrap();
                }
            });
            nodes_become(fixture.ensemble, &locks, place + 1).await;
            if place == 0 && is_java {
                // Curator's head of the line waits with a lease that counts already.
                nodes_become(fixture.ensemble, &leases, 3).await;
            }
        }
        assert!(grants.is_empty(), "someone was granted what is held");
        held.release().await?;
        for expected in 0..4 {
            assert_eq!(grants.recv().await, Some(expected));
        }
        settled(&fixture, 0, 0).await;
    }
    Ok(())
}

#[tokio::test]
async fn the_permits_of_a_killed_java_process_come_back() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/permits-killed").await? else {
        return Ok(());
    };
    fixture.java.thread("a").permits(&fixture.path, "2", 2, None).await?.expect("both");
    let semaphore = Semaphore::new(&fixture.manager, fixture.path.as_str(), 2)?;
    let waiter = tokio::spawn(async move { semaphore.acquire_many(2).await });
    settled(&fixture, 2, 1).await;
    fixture.java.kill().await?;
    let lease = waiter.await??;
    let dump = fixture.ensemble.server(0).dump().await?;
    assert!(!dump.sessions.contains(&fixture.java.session()), "granted before the holder's session ended");
    lease.release().await?;
    Ok(())
}

#[tokio::test]
async fn a_limit_raised_in_one_language_wakes_who_waits_in_the_other() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/permits-shared").await? else {
        return Ok(());
    };
    let (path, thread) = (fixture.path.clone(), fixture.java.thread("a"));
    let count = "/interop/shared-count";
    let limit = SharedLimit::new(&fixture.manager, count)?;
    let semaphore = Semaphore::new_shared(&fixture.manager, path.as_str(), &limit)?;
    thread.set_count(count, 1).await?;
    assert_eq!(limit.get().await?, 1);

    let first = semaphore.acquire().await?;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().await }
    });
    settled(&fixture, 1, 1).await;
    thread.set_count(count, 2).await?;
    let second = waiter.await??;

    let waiter = tokio::spawn({
        let (thread, path) = (fixture.java.thread("b"), path.clone());
        async move { thread.permits(&path, count, 1, None).await }
    });
    // It waits with its own lease.
    settled(&fixture, 3, 1).await;
    limit.set(3).await?;
    assert!(waiter.await??.is_some());
    limit.set(1).await?;
    assert!(first.is_valid() && second.is_valid());
    assert!(semaphore.try_acquire().await?.is_none());
    first.release().await?;
    second.release().await?;
    thread.return_permits(&path, 1).await?;
    settled(&fixture, 0, 0).await;
    Ok(())
}

#[tokio::test]
async fn a_mutex_in_semaphore_layout_is_exchanged_with_curators() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/semaphore-mutex").await? else {
        return Ok(());
    };
    let (path, thread) = (fixture.path.clone(), fixture.java.thread("a"));
    let mutex = Mutex::in_semaphore_layout(&fixture.manager, path.as_str())?;

    assert!(thread.enter(&path, None).await?);
    assert!(mutex.try_acquire().await?.is_none());
    let waiter = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await }
    });
    settled(&fixture, 1, 1).await;
    thread.leave(&path).await?;
    let guard = waiter.await??;
    assert!(!thread.enter(&path, Some(Duration::ZERO)).await?);
    let waiter = tokio::spawn({
        let (thread, path) = (thread.clone(), path.clone());
        async move { thread.enter(&path, None).await }
    });
    settled(&fixture, 2, 1).await;
    guard.release().await?;
    assert!(waiter.await??);
    assert!(mutex.acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    thread.leave(&path).await?;
    mutex.acquire().await?.release().await?;
    settled(&fixture, 0, 0).await;
    Ok(())
}
