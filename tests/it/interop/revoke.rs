//! Revoke requests between the languages.

use lockkeeper::{Revoker, RwLock};

use super::fixture::{InteropFixture, Outcome};

#[tokio::test]
async fn a_revoke_request_of_java_reaches_our_holder() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/revoked-by-java").await? else {
        return Ok(());
    };
    let (mutex, thread) = (fixture.mutex(), fixture.java.thread("ops"));
    let guard = mutex.acquire().await?;
    let waiter = tokio::spawn({
        let (thread, path) = (fixture.java.thread("next"), fixture.path.clone());
        async move { thread.acquire(&path).await }
    });
    fixture.queue_of(2).await?;
    let (asked, revoked) = tokio::join!(guard.revoke_requested(), thread.revoke(guard.path()));
    asked?;
    revoked?;
    assert!(guard.is_valid(), "a request ends no hold");
    assert!(mutex.inspect().await?.holders().all(lockkeeper::inspect::ContenderInfo::is_revoked));
    guard.release().await?;
    waiter.await??;
    Ok(())
}

#[tokio::test]
async fn our_revoke_request_reaches_java() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/revoked-by-us").await? else {
        return Ok(());
    };
    let (mutex, thread) = (fixture.mutex(), fixture.java.thread("holder"));
    thread.make_revocable(&fixture.path).await?;
    let grant = thread.acquire(&fixture.path).await?;
    let ticket = mutex.enqueue().await?;
    let seen = mutex.inspect().await?;
    let asked = Revoker::new(&fixture.manager).ask(seen.holders()).await?;
    assert_eq!(
        asked.iter().map(lockkeeper::inspect::ContenderInfo::path).collect::<Vec<_>>(),
        [grant.node.as_str()]
    );
    let mut ticket = ticket;
    let guard = ticket.wait().await?;
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    Ok(())
}

#[tokio::test]
async fn a_revoke_request_to_a_waiter_is_reported_once_it_holds() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/revoked-in-line").await? else {
        return Ok(());
    };
    let lock = RwLock::new(&fixture.manager, &fixture.path)?;
    let read = lock.read().await?;
    let mut ticket = lock.enqueue_write().await?;
    let seen = lock.inspect().await?;
    let writer = seen.waiters().next().expect("the writer");
    fixture.java.thread("ops").revoke(writer.path()).await?;
    read.release().await?;
    let write = ticket.wait().await?;
    assert_eq!(write.path(), writer.path());
    write.revoke_requested().await?;
    Ok(())
}
