//! Reads of nodes go on after a broken link, until the operation timeout.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

const PATH: &str = "/prices";

/// A session that outlasts the test.
const SESSION: Duration = Duration::from_secs(60);

/// The reads, and the request of each.
const READS: [Op; 4] = [Op::GetData, Op::GetChildren, Op::Exists, Op::GetAcl];

fn read(manager: &ConnectionManager, op: Op) -> BoxFuture<'static, Result<bool, Error>> {
    let znodes = manager.znodes();
    match op {
        Op::GetData => async move { Ok(znodes.read(PATH).await?.is_some()) }.boxed(),
        Op::GetChildren => async move { Ok(znodes.children(PATH).await?.is_some()) }.boxed(),
        Op::Exists => async move { Ok(znodes.exists(PATH).await?.is_some()) }.boxed(),
        _ => async move { Ok(znodes.acl(PATH).await?.is_some()) }.boxed(),
    }
}

#[tokio::test]
async fn an_inspection_whose_link_breaks_is_read_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (reader, session) = reader(&server_fixture.server).await;
    let mutex = Mutex::new(&reader, "/locks/lock").unwrap();
    let _guard = mutex.acquire().await.unwrap();
    for op in [Op::GetChildren, Op::GetData] {
        let broken = server_fixture
            .server
            .fault(When::op(op).path("/locks/**").session(session), Fault::DropConnectionBefore);
        let inspection = within("an inspection", mutex.inspect()).await.unwrap().unwrap();
        assert_eq!(inspection.holders().count(), 1, "{op:?}");
        assert_eq!(broken.hits(), 1, "{op:?}");
    }
}

async fn reader(server: &TestServer) -> (ConnectionManager, i64) {
    let before = server.sessions();
    let reader = builder(&server.connect_string()).session_timeout(SESSION).connect().await.unwrap();
    reader.znodes().create(PATH, "1", CreateMode::Persistent).await.unwrap();
    let session = server.sessions().into_iter().find(|session| !before.contains(session)).unwrap();
    (reader, session)
}

#[tokio::test]
async fn a_read_whose_link_breaks_is_sent_again() {
    for fault in [Fault::DropConnectionBefore, Fault::DropConnectionAfter] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (reader, session) = reader(&server_fixture.server).await;
        for op in READS {
            let broken = server_fixture.server.fault(When::op(op).path(PATH).session(session), fault);
            let found = within("an answer", read(&reader, op)).await.unwrap();
            assert!(found.unwrap(), "{op:?}");
            assert_eq!(broken.hits(), 1, "{op:?}");
        }
    }
}

#[tokio::test]
async fn a_read_goes_on_in_the_next_session() {
    for op in READS {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (reader, session) = reader(&server_fixture.server).await;
        let held = server_fixture.server.fault(When::op(op).path(PATH).session(session), Fault::HoldRequest);
        let _swapped = server_fixture.server.fault(When::connect().session(session), Fault::SwapSession);
        let mut reading = read(&reader, op);
        tokio::select! {
            read = &mut reading => panic!("{op:?}: {read:?}"),
            hit = within("the read", held.hit()) => hit.unwrap(),
        }
        server_fixture.server.drop_connections();
        assert!(within("an answer", reading).await.unwrap().unwrap(), "{op:?}");
    }
}

#[tokio::test]
async fn a_read_without_a_link_ends_with_a_timeout_after_the_operation_timeout() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (reader, session) = reader(&server_fixture.server).await;
    let reader = reader.with_operation_timeout(Duration::from_millis(300)).unwrap();
    let _away =
        server_fixture.server.fault(When::connect().session(session).always(), Fault::DropConnectionBefore);
    server_fixture.server.drop_connections();
    for op in READS {
        let error = within("an error", read(&reader, op)).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{op:?}: {error}");
    }
}

#[tokio::test]
async fn a_read_that_is_sent_again_ends_with_its_manager() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (reader, session) = reader(&server_fixture.server).await;
    let reader = reader.with_operation_timeout(SESSION * 60).unwrap();
    let _away =
        server_fixture.server.fault(When::connect().session(session).always(), Fault::DropConnectionBefore);
    server_fixture.server.drop_connections();
    let mut reading = READS.map(|op| read(&reader, op));
    for reading in &mut reading {
        assert!(futures::poll!(reading).is_pending());
    }
    // No server answers: the shutdown is not confirmed.
    let _ = reader.shutdown_within(Duration::from_millis(300)).await;
    for reading in reading {
        let error = within("an error", reading).await.unwrap().unwrap_err();
        assert!(error.is_closed(), "{error}");
    }
}
