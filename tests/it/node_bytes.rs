//! A session with as many nodes as one may have, and a real server that has to read the record of its end.

use std::time::Duration;

use futures::future::join_all;
use lockkeeper::config::NODE_BYTES_MAX;
use lockkeeper::error::Refusal;
use lockkeeper::{Error, Mutex};
use lockkeeper_tests::{Ensemble, Timing};

use crate::support::{TICK, builder, connect};

/// The size of each path: long, so that few nodes fill the budget.
const PATH: usize = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_survives_the_end_of_a_session_with_as_many_nodes_as_one_may_have() {
    let ensemble = Ensemble::builder().tick(TICK).durable(true).start().await.unwrap();
    // Far more than one session may have.
    let count = 3 * NODE_BYTES_MAX / PATH;
    for closes in [true, false] {
        let manager = builder(&ensemble.connect_string())
            .session_timeout(Duration::from_secs(4))
            .connect()
            .await
            .unwrap();
        let mutexes: Vec<Mutex> = (0..count)
            .map(|number| Mutex::new(&manager, format!("/locks/{number:0>width$}", width = PATH)).unwrap())
            .collect();
        let mut acquired = Vec::new();
        for batch in mutexes.chunks(64) {
            acquired.extend(join_all(batch.iter().map(Mutex::acquire)).await);
        }
        let (held, refused): (Vec<_>, Vec<_>) = acquired.into_iter().partition(Result::is_ok);
        let bytes = held.len() * PATH;
        assert!((NODE_BYTES_MAX * 8 / 10..=NODE_BYTES_MAX).contains(&bytes), "{bytes} bytes");
        for error in refused.into_iter().filter_map(Result::err) {
            assert!(matches!(error, Error::Refused { refusal: Refusal::SessionFull, .. }), "{error}");
        }
        if closes {
            manager.shutdown().await.unwrap();
        } else {
            // No close reaches the server, which ends the session by itself.
            ensemble.server(0).kill().await.unwrap();
            assert!(manager.shutdown().await.is_err());
            ensemble.server(0).start().await.unwrap();
        }
        drop(held);
        let next = connect(&ensemble.connect_string()).await;
        let first = Mutex::new(&next, format!("/locks/{:0>width$}", 0, width = PATH)).unwrap();
        let granted =
            tokio::time::timeout(Timing::settle(), first.acquire()).await.expect("a grant").unwrap();
        granted.release().await.unwrap();
        next.shutdown().await.unwrap();
        // It reads the record of the end of the session from its log.
        ensemble.server(0).kill().await.unwrap();
        ensemble.server(0).start().await.unwrap();
        connect(&ensemble.connect_string()).await.shutdown().await.unwrap();
    }
}
