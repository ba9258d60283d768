//! Who asks whom to let go, in either language.

use lockkeeper::{Revoker, RwLock};
use lockkeeper_tests::left_out;

use super::scene::{Outcome, Scene};

#[tokio::test]
async fn java_asks_us_to_let_go() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/revoked-by-java").await?;
    let (mutex, thread) = (scene.mutex(), scene.java.thread("ops"));
    let guard = mutex.acquire().await?;
    let waiter = tokio::spawn({
        let (thread, path) = (scene.java.thread("next"), scene.path.clone());
        async move { thread.acquire(&path).await }
    });
    scene.line_of(2).await?;
    let (asked, revoked) = tokio::join!(guard.revocation(), thread.revoke(guard.path()));
    asked?;
    revoked?;
    assert!(guard.is_valid(), "it is a request");
    assert!(mutex.inspect().await?.holders().all(lockkeeper::ContenderInfo::is_revoked));
    guard.release().await?;
    waiter.await??;
    Ok(())
}

#[tokio::test]
async fn we_ask_java_to_let_go() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/revoked-by-us").await?;
    let (mutex, thread) = (scene.mutex(), scene.java.thread("holder"));
    thread.make_revocable(&scene.path).await?;
    let grant = thread.acquire(&scene.path).await?;
    let ticket = mutex.enqueue().await?;
    let seen = mutex.inspect().await?;
    let asked = Revoker::new(&scene.manager).ask(seen.holders()).await?;
    assert_eq!(asked.iter().map(lockkeeper::ContenderInfo::path).collect::<Vec<_>>(), [grant.node.as_str()]);
    let mut ticket = ticket;
    let guard = ticket.wait().await?;
    assert!(guard.fencing_token().as_u64() > grant.czxid);
    Ok(())
}

#[tokio::test]
async fn who_waits_is_asked_all_the_same_once_it_holds() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let scene = Scene::at("/interop/revoked-in-line").await?;
    let lock = RwLock::new(&scene.manager, &scene.path)?;
    let read = lock.read().await?;
    let mut ticket = lock.enqueue_write().await?;
    let seen = lock.inspect().await?;
    let writer = seen.waiters().next().expect("the writer");
    scene.java.thread("ops").revoke(writer.path()).await?;
    read.release().await?;
    let write = ticket.wait().await?;
    assert_eq!(write.path(), writer.path());
    write.revocation().await?;
    Ok(())
}
