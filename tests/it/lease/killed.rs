//! The time for which a killed holder excludes others.

use std::time::Duration;

use lockkeeper::{BootInstant, Mutex};
use lockkeeper_tests::{Ensemble, Proxies, Timing};

use super::expiry::expired_at;
use super::frozen::{SESSION, Worker};
use crate::support::{TICK, connect, nodes_become};

/// The additional time of a server on a busy machine.
const BUSY: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_killed_holder_excludes_others_for_its_session_and_a_tick_at_most() {
    let ensemble = Ensemble::builder().property("user.timezone", "UTC").start().await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let mut worker = Worker::start(&proxies.connect_string());
        worker.says("granted").await;
        let session = proxies.sessions().last().unwrap().id;
        let next = tokio::spawn({
            let mutex = mutex.clone();
            async move { mutex.acquire().await.unwrap() }
        });
        nodes_become(&ensemble, "/lock", 2).await;
        worker.kill().await;
        let killed = BootInstant::now();
        next.await.unwrap().release().await.unwrap();
        let expired = expired_at(&ensemble, session, usize::MAX).unwrap();
        kept.push(expired.since(killed));
    }
    // A server that does not run for a while adds to one of them.
    assert!(kept.iter().min() <= Some(&(SESSION + TICK + Timing::scaled(BUSY))), "{kept:?}");
}
