//! A server of ZooKeeper, and services behind sockets.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use lockkeeper::ConnectionManager;
use lockkeeper::config::RetryPolicy;
use lockkeeper_testserver::TestServer;
use tokio::net::TcpListener;

/// A session that outlasts every jump of the server's clock.
const SESSION: Duration = Duration::from_secs(10_000);

/// No test waits so long: the server's clock is moved.
pub(crate) const WINDOW: Duration = Duration::from_secs(600);
pub(crate) const GRACE: Duration = Duration::from_secs(60);

pub(crate) async fn server() -> TestServer {
    TestServer::builder().session_timeouts(Duration::from_secs(1), SESSION).start().await.unwrap()
}

pub(crate) async fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::builder(&server.connect_string())
        .session_timeout(SESSION)
        .retry(RetryPolicy::exponential(Duration::from_millis(5), Duration::from_millis(100)))
        .connect()
        .await
        .unwrap()
}

/// Serves until the runtime of the test ends.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
