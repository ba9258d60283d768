//! kazoo, whose locks exclude ours when kazoo is given our node names, and the results without these names.

use lockkeeper::{Error, Mutex, RwLock};
use lockkeeper_tests::{Ensemble, Peer, left_out};
use tokio::sync::mpsc;

use super::fixture::{Outcome, SESSION, SHORTLY, queue_of};
use crate::support::connect;

async fn kazoo(ensemble: &Ensemble) -> Peer {
    Peer::kazoo(&ensemble.connect_string(), SESSION).await.unwrap()
}

#[tokio::test]
async fn kazoo_and_rust_share_one_queue() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (kazoo, manager) = (kazoo(ensemble).await, connect(&ensemble.connect_string()).await);
    for kazoo_is_first in [true, false] {
        let path = format!("/interop/kazoo-queue-{kazoo_is_first}");
        let mutex = Mutex::new(&manager, path.as_str())?;
        let held = mutex.acquire().await?;
        let (granted, mut grants) = mpsc::unbounded_channel();
        for position in 0..4 {
            let (granted, kazoo, mutex) = (granted.clone(), kazoo.clone(), mutex.clone());
            let (path_of_task, thread) = (path.clone(), format!("t{position}"));
            tokio::spawn(async move {
                if (position % 2 == 0) == kazoo_is_first {
                    let grant = kazoo.take("acquire", &thread, &path_of_task).await.unwrap();
                    granted.send((position, grant.czxid)).unwrap();
                    kazoo.ask(&format!("release {thread} {path_of_task}")).await.unwrap();
                } else {
                    let guard = mutex.acquire().await.unwrap();
                    granted.send((position, guard.fencing_token().as_u64())).unwrap();
                    guard.release().await.unwrap();
                }
            });
            queue_of(ensemble, &path, position + 2).await?;
        }
        assert!(grants.is_empty(), "granted while the lock is held");
        let mut token = held.fencing_token().as_u64();
        held.release().await?;
        for expected in 0..4 {
            let (position, next) = grants.recv().await.ok_or("no grant")?;
            assert!(position == expected && next > token, "{position} with token {next} after {token}");
            token = next;
        }
        queue_of(ensemble, &path, 0).await?;
    }
    Ok(())
}

/// By default kazoo counts only its own node names, so our locks do not exclude it; `docs/protocol.md` says
/// so.
#[tokio::test]
async fn kazoo_without_our_names_ignores_our_locks_and_we_respect_its_locks() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (kazoo, manager) = (kazoo(ensemble).await, connect(&ensemble.connect_string()).await);
    let path = "/interop/kazoo-blind";
    let mutex = Mutex::new(&manager, path)?;
    let guard = mutex.acquire().await?;
    assert!(kazoo.take_within("acquire", "aware", path, SHORTLY).await?.is_none());
    assert!(kazoo.take_within("blind", "blind", path, SHORTLY).await?.is_some());
    guard.release().await?;
    assert!(mutex.acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    kazoo.ask(&format!("release blind {path}")).await?;
    mutex.acquire().await?.release().await?;
    Ok(())
}

#[tokio::test]
async fn readers_of_kazoo_and_ours_share_and_wait_for_our_writers() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (kazoo, manager) = (kazoo(ensemble).await, connect(&ensemble.connect_string()).await);
    let path = "/interop/kazoo-readers";
    let lock = RwLock::new(&manager, path)?;
    let reader = lock.read().await?;
    kazoo.take("read", "a", path).await?;
    assert!(lock.try_write().await?.is_none());
    reader.release().await?;
    assert!(lock.write_timeout(SHORTLY).await.unwrap_err().is_timeout());
    kazoo.ask(&format!("unread a {path}")).await?;
    let writer = lock.write().await?;
    assert!(kazoo.take_within("read", "a", path, SHORTLY).await?.is_none());
    let waiting = tokio::spawn({
        let kazoo = kazoo.clone();
        async move { kazoo.take("read", "b", path).await }
    });
    queue_of(ensemble, path, 2).await?;
    assert!(!waiting.is_finished());
    writer.release().await?;
    waiting.await??;
    assert!(lock.try_write().await?.is_none());
    kazoo.ask(&format!("unread b {path}")).await?;
    Ok(())
}

/// kazoo's writers have the node name of its mutex: on a path of our read/write lock they are another kind,
/// and we do not contend beside them.
#[tokio::test]
async fn a_writer_of_kazoo_on_our_path_is_reported_and_we_do_not_contend_beside_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (kazoo, manager) = (kazoo(ensemble).await, connect(&ensemble.connect_string()).await);
    let path = "/interop/kazoo-writer";
    let lock = RwLock::new(&manager, path)?;
    lock.write().await?.release().await?;
    let grant = kazoo.take("write", "a", path).await?;
    let refusals = [
        lock.read().await.unwrap_err(),
        lock.try_read().await.unwrap_err(),
        lock.write().await.unwrap_err(),
        lock.try_write().await.unwrap_err(),
    ];
    for error in refusals {
        let Error::ConflictingKind { child, .. } = &error else { panic!("{error}") };
        assert!(grant.node.ends_with(child.as_str()), "{error}");
    }
    queue_of(ensemble, path, 1).await?;
    kazoo.ask(&format!("unwrite a {path}")).await?;
    // A mutex reports readers in the same way.
    kazoo.take("read", "a", path).await?;
    let error = Mutex::new(&manager, path)?.acquire().await.unwrap_err();
    assert!(matches!(error, Error::ConflictingKind { .. }), "{error}");
    kazoo.ask(&format!("unread a {path}")).await?;
    Ok(())
}
