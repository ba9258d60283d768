//! The whole way: a real lock, whose holder is stopped until its session has expired.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Mutex};
use lockkeeper_fence::FencingToken;
use lockkeeper_tests::Timing;
use lockkeeper_testserver::TestServer;
use tokio::time::timeout;

use crate::database::Database;
use crate::link::Link;

const RESOURCE: &str = "stock/train-7";

async fn sell(link: &mut Link, token: FencingToken, is_fenced: bool) -> bool {
    link.run("BEGIN").await.unwrap();
    if is_fenced && let Err(refused) = link.check(RESOURCE, token).await {
        assert!(refused.is_stale(), "{refused}");
        link.run("ROLLBACK").await.unwrap();
        return false;
    }
    link.run(&format!("INSERT INTO orders VALUES ('{RESOURCE}', {})", token.as_u64())).await.unwrap();
    link.run("COMMIT").await.unwrap();
    true
}

async fn mutex(server: &TestServer) -> (ConnectionManager, Mutex) {
    let manager = ConnectionManager::builder(&server.connect_string());
    let manager = manager.session_timeout(Duration::from_secs(60)).connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/train-7").unwrap();
    (manager, mutex)
}

/// Whether the late write is kept.
async fn late_write(database: &Database, is_fenced: bool) -> bool {
    let server = TestServer::start().await.unwrap();
    let (first, of_first) = mutex(&server).await;
    let guard = of_first.acquire().await.unwrap();
    let token = guard.fencing_token();
    for session in server.sessions() {
        server.expire(session);
    }
    let (second, of_second) = mutex(&server).await;
    let next = timeout(Timing::event(), of_second.acquire()).await.expect("a grant").unwrap();
    assert!(next.fencing_token() > token);
    assert!(sell(&mut database.link().await, next.fencing_token(), is_fenced).await);
    // The first holder continues: its token, and its decision to write, are of before its loss.
    let is_kept = sell(&mut database.link().await, token, is_fenced).await;
    drop((guard, next, of_first, of_second, first, second));
    is_kept
}

#[tokio::test]
async fn a_holder_whose_session_expires_between_token_and_write_writes_nothing() {
    for database in Database::all().await {
        assert!(!late_write(&database, true).await, "{database:?}");
        let mut link = database.link().await;
        let orders = link.number("SELECT count(*) FROM orders").await.unwrap();
        assert_eq!(orders, 1, "{database:?}");
        link.run("DELETE FROM lockkeeper_fence").await.unwrap();
        assert!(late_write(&database, false).await, "{database:?}");
    }
}
