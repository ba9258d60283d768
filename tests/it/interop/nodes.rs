//! The nodes on the server: each library reads the other's, and those of further clients.

use std::time::Duration;

use lockkeeper::error::Phase;
use lockkeeper::{Error, Mutex};
use lockkeeper_tests::{CreateMode, CuratorPeer, Ensemble, Timing, eventually, left_out};
use tokio::sync::Mutex as AsyncMutex;

use super::fixture::{Contender, InteropFixture, Outcome, SESSION, queue_of};
use crate::support::connect;

#[tokio::test]
async fn each_library_reads_the_nodes_of_the_other() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/nodes").await? else {
        return Ok(());
    };
    let holder = fixture.java.thread("holder");
    let grant = holder.acquire(&fixture.path).await?;
    let mutex = fixture.mutex().with_node_data("the train office");
    let mut waiter = tokio::spawn(async move { mutex.acquire().await });
    let queue = fixture.queue_of(2).await?;

    // Curator sorts our node correctly, and reads its data.
    assert_eq!(queue[0], grant.node);
    assert_eq!(fixture.java.participants(&fixture.path).await?, queue);
    assert_eq!(fixture.java.data(&queue[1]).await?, "the train office");

    // The error of a timeout names Curator's node, with its data.
    waiter.abort();
    assert!((&mut waiter).await.unwrap_err().is_cancelled());
    fixture.queue_of(1).await?;
    let error = fixture.mutex().acquire_timeout(Duration::from_secs(2)).await.unwrap_err();
    let Error::Timeout { phase: Phase::Queued { predecessor, predecessor_data, ahead, .. }, .. } = error
    else {
        panic!("{error}")
    };
    let (data, _) = fixture.oracle.lock().await.data(&grant.node).await?;
    assert_eq!(format!("{}/{predecessor}", fixture.path), grant.node);
    assert_eq!(
        (predecessor_data.as_bytes(), ahead),
        (&data[..], 1),
        "Curator's node data is the host's address"
    );
    holder.release(&fixture.path).await?;
    Ok(())
}

#[tokio::test]
async fn directories_of_both_are_containers_and_each_recreates_a_reaped_one_of_the_other() -> Outcome {
    if left_out() {
        return Ok(());
    }
    // A server does not tell clients which nodes are containers, but it removes no other kind.
    let ensemble = Ensemble::builder().property("znode.container.checkIntervalMs", "100").start().await?;
    let java = CuratorPeer::start(&ensemble.connect_string(), SESSION).await?;
    let manager = connect(&ensemble.connect_string()).await;
    let path = "/reaped/deep/lock";
    let contenders =
        [Contender::Java(java.thread("a"), path.into()), Contender::Rust(Mutex::new(&manager, path)?)];
    let oracle = AsyncMutex::new(ensemble.raw().await?);
    let mut token = 0;
    for contender in contenders.iter().cycle().take(4) {
        let hold = contender.acquire().await?;
        assert!(hold.token() > token, "tokens continue where sequence numbers begin anew");
        token = hold.token();
        hold.release().await?;
        eventually("the directories are reaped", Timing::event(), async || {
            oracle.lock().await.exists("/reaped").await.ok()?.is_none().then_some(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn contenders_of_go_and_kazoo_share_our_queue() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/interop/foreign")?;
    mutex.acquire().await?.release().await?;
    let mut foreign = ensemble.raw().await?;
    for name in
        ["_c_6f9619ff8b864d11b42d00cf4fc964ff-lock-", "6f9619ff8b864d11b42d00cf4fc964ff__lock__", "lock-"]
    {
        let node = format!("/interop/foreign/{name}");
        let (node, stat) = foreign.create(&node, b"", CreateMode::EphemeralSequential).await?;
        assert!(mutex.try_acquire().await?.is_none(), "{node}");
        queue_of(ensemble, "/interop/foreign", 1).await?;
        let waiter = tokio::spawn({
            let mutex = mutex.clone();
            async move { mutex.acquire().await }
        });
        queue_of(ensemble, "/interop/foreign", 2).await?;
        assert!(!waiter.is_finished());
        foreign.delete(&node).await?;
        let guard = waiter.await??;
        assert!(guard.fencing_token().as_u64() > stat.czxid.cast_unsigned());
        guard.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn another_kind_of_lock_on_the_path_is_reported_and_left_alone() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/interop/mixed")?;
    mutex.acquire().await?.release().await?;
    let mut foreign = ensemble.raw().await?;
    for name in ["__WRIT__", "__READ__", "lease-"] {
        let node = format!("/interop/mixed/_c_6f9619ff-8b86-4d11-b42d-00cf4fc964ff-{name}");
        let (node, _) = foreign.create(&node, b"", CreateMode::EphemeralSequential).await?;
        for error in [mutex.try_acquire().await.unwrap_err(), mutex.acquire().await.unwrap_err()] {
            let Error::ConflictingKind { path, child } = error else { panic!("{error}") };
            assert_eq!((format!("{path}/{child}"), path.as_str()), (node.clone(), "/interop/mixed"));
        }
        assert_eq!(
            queue_of(ensemble, "/interop/mixed", 1).await?,
            *std::slice::from_ref(&node),
            "our own nodes are deleted"
        );
        foreign.delete(&node).await?;
        mutex.acquire().await?.release().await?;
    }
    Ok(())
}
