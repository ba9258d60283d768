//! Our counters and shared values with Curator's and kazoo's, on one path.

use lockkeeper::error::CounterError;
use lockkeeper::{Counter, SharedCount, SharedValue};
use lockkeeper_tests::{Ensemble, Peer, left_out};

use super::fixture::{Outcome, SESSION};
use crate::support::connect;

#[tokio::test]
async fn java_and_rust_add_to_one_counter_and_lose_nothing() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (servers, path) = (ensemble.connect_string(), "/interop/atomic-long");
    let (java, manager) = (Peer::java(&servers, SESSION).await?, connect(&servers).await);
    let counter = Counter::new(&manager, path)?;
    let adding = tokio::spawn({
        let (java, request) = (java.clone(), format!("addlong a {path} 3 100"));
        async move { java.ask(&request).await }
    });
    for _ in 0..100 {
        counter.add(2).await?;
    }
    adding.await??;
    assert_eq!(counter.get().await?, 500);
    assert_eq!(java.ask(&format!("addlong a {path} -1 1")).await?, "499");
    assert_eq!(counter.increment().await?, 500);

    let small = Counter::new_i32(&manager, "/interop/atomic-integer")?;
    assert_eq!(java.ask("addint a /interop/atomic-integer 5 2").await?, "10");
    assert_eq!(small.add(-20).await?, -10);
    assert_eq!(java.ask("addint a /interop/atomic-integer 1 1").await?, "-9");
    let other = Counter::new(&manager, "/interop/atomic-integer")?.get().await.unwrap_err();
    assert!(matches!(other.recipe(), Some(CounterError::NotANumber { bytes: 4, .. })));
    Ok(())
}

#[tokio::test]
async fn kazoo_java_and_rust_add_to_one_counter_while_peers_are_killed() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let (servers, path) = (ensemble.connect_string(), "/interop/counter-of-three");
    let manager = connect(&servers).await;
    let counter = Counter::new_i32(&manager, path)?;
    let ours = tokio::spawn({
        let counter = counter.clone();
        async move {
            for _ in 0..200 {
                counter.increment().await?;
            }
            Ok::<_, lockkeeper::Error>(())
        }
    });
    let (mut least, mut most) = (200, 200);
    for round in 0..3 {
        let (java, kazoo) = (Peer::java(&servers, SESSION).await?, Peer::kazoo(&servers, SESSION).await?);
        for peer in [java, kazoo] {
            let adding = tokio::spawn({
                let (peer, request) = (peer.clone(), format!("addint a {path} 1 50"));
                async move { peer.ask(&request).await }
            });
            if round == 1 {
                peer.kill().await?;
                most += 50;
            }
            if adding.await?.is_ok() {
                least += 50;
                most += if round == 1 { 0 } else { 50 };
            }
        }
    }
    ours.await??;
    let sum = counter.get().await?;
    assert!((least..=most).contains(&sum), "{sum} is not within {least} and {most}");
    Ok(())
}

#[tokio::test]
async fn java_and_rust_share_counts_and_values() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::shared().await?;
    let servers = ensemble.connect_string();
    let (java, manager) = (Peer::java(&servers, SESSION).await?, connect(&servers).await);
    let count = SharedCount::new(&manager, "/interop/values-count", 7)?;
    assert_eq!(count.get().await?.value, 7);
    assert_eq!(java.ask("shared a /interop/values-count 12").await?, "0");
    let seen = count.get().await?;
    assert_eq!(seen.value, 12);
    assert!(count.compare_and_set(seen.revision, 13).await?.is_set());
    assert!(!count.compare_and_set(seen.revision, 14).await?.is_set());
    assert_eq!(java.ask("shared a /interop/values-count 20").await?, "13");
    let view = count.view()?;
    view.sync().await?;
    let node = view.node().ok_or("no node")?;
    assert_eq!(node.value().ok(), Some(&20));

    let value = SharedValue::new(&manager, "/interop/values-text", String::new())?;
    value.set("rust".to_owned()).await?;
    assert_eq!(java.ask("value a /interop/values-text java").await?, "rust");
    assert_eq!(value.get().await?.value, "java");
    Ok(())
}
