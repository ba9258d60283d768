//! Our barriers with Curator's and kazoo's, on one path.
//!
//! A wake-up of any kind lets Curator 5.4 into a double barrier (GH-1290), so nothing here says that Java
//! waits for the last member. Ours does.

use std::time::Duration;

use lockkeeper::{Barrier, DoubleBarrier};
use lockkeeper_tests::{Ensemble, Peer, Timing, eventually, left_out};

use super::fixture::{Outcome, SESSION};
use crate::support::{children, connect};

async fn peers(ensemble: &Ensemble) -> [Peer; 2] {
    let servers = ensemble.connect_string();
    [Peer::java(&servers, SESSION).await.unwrap(), Peer::kazoo(&servers, SESSION).await.unwrap()]
}

#[tokio::test]
async fn a_barrier_blocks_java_kazoo_and_rust_whichever_client_sets_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (peers, manager) = (peers(ensemble).await, connect(&ensemble.connect_string()).await);
    for (number, peer) in peers.iter().enumerate() {
        let path = format!("/interop/barrier-{number}");
        let barrier = Barrier::new(&manager, path.as_str())?;
        peer.ask(&format!("barrier a {path} set")).await?;
        assert!(barrier.inspect().await?.is_set());
        assert!(barrier.wait_timeout(Duration::from_millis(100)).await.unwrap_err().is_timeout());
        let waiting = tokio::spawn({
            let barrier = barrier.clone();
            async move { barrier.wait().await }
        });
        peer.ask(&format!("barrier a {path} remove")).await?;
        waiting.await??;
        assert!(barrier.set().await?);
        assert_eq!(peer.ask(&format!("barrier a {path} 100")).await?, "");
        let waiting = tokio::spawn({
            let (peer, request) = (peer.clone(), format!("barrier a {path} 30000"));
            async move { peer.ask(&request).await }
        });
        assert!(barrier.remove().await?);
        assert_eq!(waiting.await??, "free");
    }
    Ok(())
}

#[tokio::test]
async fn members_of_java_kazoo_and_rust_enter_one_double_barrier_and_leave_it() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (peers, manager) = (peers(ensemble).await, connect(&ensemble.connect_string()).await);
    for (number, peer) in peers.iter().enumerate() {
        for rust_is_first in [true, false] {
            let path = format!("/interop/double-{number}-{rust_is_first}");
            let barrier = DoubleBarrier::new(&manager, path.as_str(), 2)?;
            let join = {
                let (peer, request) = (peer.clone(), format!("meet a {path} 2 30000"));
                async move { peer.ask(&request).await }
            };
            let enter = {
                let barrier = barrier.clone();
                async move { barrier.enter().await }
            };
            let (joining, entering) = if rust_is_first {
                let entering = tokio::spawn(enter);
                member(ensemble, &path).await?;
                assert!(!entering.is_finished(), "alone inside");
                (tokio::spawn(join), entering)
            } else {
                let joining = tokio::spawn(join);
                member(ensemble, &path).await?;
                (joining, tokio::spawn(enter))
            };
            let inside = entering.await??;
            assert_eq!(joining.await??, "in");
            assert_eq!(barrier.inspect().await?.inside().count(), 2);
            let quitting = tokio::spawn({
                let (peer, request) = (peer.clone(), format!("quit a {path} 30000"));
                async move { peer.ask(&request).await }
            });
            inside.leave().await?;
            assert_eq!(quitting.await??, "out");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_member_of_java_that_is_killed_inside_does_not_keep_ours() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (peers, manager) = (peers(ensemble).await, connect(&ensemble.connect_string()).await);
    for (number, peer) in peers.iter().enumerate() {
        let path = format!("/interop/double-killed-{number}");
        let barrier = DoubleBarrier::new(&manager, path.as_str(), 2)?;
        let joining = tokio::spawn({
            let (peer, request) = (peer.clone(), format!("meet a {path} 2 30000"));
            async move { peer.ask(&request).await }
        });
        let inside = barrier.enter().await?;
        assert_eq!(joining.await??, "in");
        peer.kill().await?;
        inside.leave().await?;
        // The node of the round is left, and lets nobody in.
        let alone = barrier.enter_timeout(Duration::from_millis(100)).await.unwrap_err();
        assert!(alone.is_timeout(), "{alone}");
    }
    Ok(())
}

/// Waits until there is a member.
async fn member(ensemble: &Ensemble, path: &str) -> Outcome {
    eventually("a member", Timing::event(), async || {
        children(ensemble, path).await.iter().any(|name| name != "ready").then_some(())
    })
    .await?;
    Ok(())
}
