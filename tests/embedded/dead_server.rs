//! A connect string of two servers, one of which accepts connections and never answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use lockkeeper::ConnectionManager;
use lockkeeper_testserver::TestServer;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::server_fixture::{SESSION, TICK, builder, servers};

/// A server that never answers. It counts the connections that ask for a session.
struct SilentServer {
    address: String,
    attempts: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl SilentServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let attempts = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&attempts);
        let accepting = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    let mut first = [0; 4];
                    // A look at the servers asks for their statistics.
                    if stream.read_exact(&mut first).await.is_ok() && first != *b"srvr" {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                });
            }
        });
        Self { address, attempts, accepting }
    }

    fn attempts(&self) -> usize {
        self.attempts.load(Ordering::Relaxed)
    }
}

impl Drop for SilentServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connected(server: &TestServer) -> (SilentServer, ConnectionManager) {
    let silent = SilentServer::start().await;
    let servers = format!("{},{}", silent.address, server.connect_string());
    let manager = builder(&servers).session_timeout(SESSION * 6).connect().await.unwrap();
    (silent, manager)
}

/// The client tries the servers in random order, so each of many clients is a sample.
#[tokio::test]
async fn a_dead_server_of_two_costs_one_attempt_at_connect_and_one_at_a_broken_link() {
    let server = servers().tick(TICK).session_timeouts(TICK * 2, Duration::from_secs(60));
    let server = server.start().await.unwrap();
    let connecting = join_all((0..24).map(|_| connected(&server)));
    let clients = within("all connections", connecting).await.unwrap();
    let attempts = || clients.iter().map(|(silent, _)| silent.attempts()).collect::<Vec<_>>();
    let at_connect = attempts();
    assert!(at_connect.iter().all(|attempts| *attempts <= 1), "{at_connect:?}");
    server.drop_connections();
    let reads = join_all(clients.iter().map(async |(_, manager)| {
        while manager.znodes().read("/zookeeper").await.is_err() {
            tokio::task::yield_now().await;
        }
    }));
    within("all links", reads).await.unwrap();
    let all = attempts();
    let more: Vec<usize> = all.iter().zip(&at_connect).map(|(all, before)| all - before).collect();
    assert!(more.iter().all(|attempts| *attempts <= 1), "{more:?}");
}
