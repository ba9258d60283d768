//! The log of servers that have lost their data.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_testserver::TestServer;

use crate::seen::Seen;
use crate::{SESSION, builder};

async fn server_at(port: u16) -> TestServer {
    let tick = Duration::from_millis(50);
    loop {
        let server = TestServer::builder().port(port).tick(tick).session_timeouts(tick * 2, SESSION);
        match server.start().await {
            Ok(server) => return server,
            // The server before still has the port.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

fn errors(seen: &Seen) -> Vec<crate::seen::Entry> {
    seen.all().into_iter().filter(|entry| entry.level == "ERROR").collect()
}

async fn used(manager: &ConnectionManager) -> Mutex {
    let mutex = Mutex::new(manager, "/lock").unwrap();
    for _ in 0..20 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    mutex
}

#[tokio::test]
async fn servers_that_went_back_are_one_error_with_both_transactions() {
    let (seen, _listening) = Seen::begin();
    let server = server_at(0).await;
    let manager = builder(&server).connect().await.unwrap();
    let mutex = used(&manager).await;
    assert_eq!(errors(&seen).len(), 0);
    let port = server.port();
    server.stop().await;
    drop(server);
    let _server = server_at(port).await;
    let mut refused = Vec::new();
    for _ in 0..3 {
        let acquiring = tokio::time::timeout(Duration::from_secs(60), mutex.acquire());
        refused.push(acquiring.await.unwrap().unwrap_err());
    }
    let Error::ServersReset { seen: highest, now, .. } = &refused[0] else { panic!("{refused:?}") };
    let errors = errors(&seen);
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert!(error.field("advice").contains("token_generation"), "{error:?}");
    assert_eq!(error.field("seen"), highest.to_string());
    assert_eq!(error.field("now"), now.to_string());
}
