//! A value that is initialised once.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::error::{ConfigError, InitError};
use lockkeeper::{ConnectionManager, Error, OnceCell};
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_testserver::{Fault, Op, When};
use tokio::sync::{Notify, Semaphore};

use crate::cancellation::dropped_anywhere;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

const VALUE: &str = "/locks/lock/value";

async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

fn cell(manager: &ConnectionManager) -> OnceCell {
    OnceCell::new(manager, LOCK).unwrap()
}

fn stored(server_fixture: &ServerFixture) -> Option<Vec<u8>> {
    server_fixture.server.inspect(|machine| Some(machine.tree().node(VALUE)?.data.clone()?.to_vec()))
}

#[tokio::test]
async fn one_process_initialises_and_the_others_wait_for_its_value() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (runs, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..12 {
        let manager =
            if number % 4 == 0 { client(&server_fixture).await } else { server_fixture.rival.clone() };
        let (cell, runs, go) = (cell(&manager), Arc::clone(&runs), Arc::clone(&go));
        tasks.spawn(async move {
            let init = || {
                runs.fetch_add(1, Ordering::Relaxed);
                let go = Arc::clone(&go);
                async move {
                    go.acquire().await.unwrap().forget();
                    format!("by {number}").into_bytes()
                }
            };
            cell.get_or_init(init).await.unwrap()
        });
    }
    let late = tokio::spawn({
        let cell = cell(&client(&server_fixture).await);
        async move { cell.wait().await.unwrap() }
    });
    server_fixture.queue_length_becomes(12).await.unwrap();
    let seen = cell(&server_fixture.rival).inspect().await.unwrap();
    assert_eq!((seen.holders().count(), seen.waiters().count()), (1, 11));
    assert_eq!(stored(&server_fixture), None);
    go.add_permits(1);
    let values = within("the values", tasks.join_all()).await.unwrap();
    let value = stored(&server_fixture).unwrap();
    assert!(values.iter().all(|one| *one == value), "{values:?}");
    assert_eq!(within("the value", late).await.unwrap().unwrap(), value);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    server_fixture.queue_length_becomes(0).await.unwrap();
    let never = async || -> Result<Vec<u8>, Infallible> { panic!("initialised twice") };
    let other = cell(&client(&server_fixture).await);
    assert_eq!(other.get_or_try_init(never).await.unwrap(), value);
    assert_eq!(other.get().await.unwrap(), Some(value));
}

#[tokio::test]
async fn all_waiters_get_the_value_though_the_initialiser_keeps_the_lock() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let waiting = cell(&client(&server_fixture).await);
    let begun = Arc::new(Notify::new());
    // An initialiser that never ends.
    let stuck = tokio::spawn({
        let (cell, begun) = (cell(&server_fixture.rival), Arc::clone(&begun));
        async move {
            let init = || {
                begun.notify_one();
                std::future::pending::<Vec<u8>>()
            };
            cell.get_or_init(init).await
        }
    });
    within("the initialiser", begun.notified()).await.unwrap();
    let value = tokio::spawn(async move { waiting.get_or_init(async || b"mine".to_vec()).await });
    server_fixture.queue_length_becomes(2).await.unwrap();
    // By hand, as an operator may do it.
    let znodes = server_fixture.rival.znodes();
    znodes.create(VALUE, b"by hand", lockkeeper::znodes::CreateMode::Persistent).await.unwrap();
    assert_eq!(within("the value", value).await.unwrap().unwrap().unwrap(), b"by hand");
    stuck.abort();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_initialiser_whose_session_ends_is_dropped_and_another_one_runs() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let first = tokio::spawn({
        let (cell, begun, dropped) = (cell(&actor), Arc::clone(&begun), Arc::clone(&dropped));
        async move {
            let init = || {
                let (begun, on_drop) = (Arc::clone(&begun), OnDrop(Arc::clone(&dropped)));
                async move {
                    begun.notify_one();
                    std::future::pending::<()>().await;
                    drop(on_drop);
                    b"never".to_vec()
                }
            };
            cell.get_or_init(init).await.unwrap()
        }
    });
    within("the first initialiser", begun.notified()).await.unwrap();
    let second = tokio::spawn({
        let cell = cell(&server_fixture.rival);
        async move { cell.get_or_init(async || b"second".to_vec()).await.unwrap() }
    });
    server_fixture.queue_length_becomes(2).await.unwrap();
    assert!(server_fixture.server.expire(session));
    within("the drop", dropped.acquire()).await.unwrap().unwrap().forget();
    for value in [second, first] {
        assert_eq!(within("the value", value).await.unwrap().unwrap(), b"second");
    }
    server_fixture.queue_length_becomes(0).await.unwrap();
}

/// Adds a permit when it is dropped.
struct OnDrop(Arc<Semaphore>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[tokio::test]
async fn an_initialiser_that_fails_or_panics_lets_the_next_one_run() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (cell(&server_fixture.rival), cell(&client(&server_fixture).await));
    let failed = here.get_or_try_init(async || Err("no disk")).await.unwrap_err();
    assert!(matches!(failed, InitError::Failed("no disk")), "{failed}");
    assert_eq!(failed.to_string(), "the initialiser failed: no disk");
    let panicking = tokio::spawn({
        let here = here.clone();
        async move { here.get_or_init(async || -> Vec<u8> { panic!("a fault of the initialiser") }).await }
    });
    assert!(within("the panic", panicking).await.unwrap().unwrap_err().is_panic());
    assert_eq!((stored(&server_fixture), here.get().await.unwrap()), (None, None));
    // An empty value is a value.
    assert_eq!(there.get_or_init(async || Vec::new()).await.unwrap(), b"");
    assert_eq!(here.get_or_init(async || b"x".to_vec()).await.unwrap(), b"");
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_lost_answer_stores_one_value_and_returns_it() {
    for fault in [Fault::DropConnectionBefore, Fault::DropConnectionAfter] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let cell = cell(&server_fixture.rival);
        let lost = server_fixture.server.fault(When::op(Op::Multi).path(VALUE), fault);
        let mut runs = 0;
        let init = || {
            runs += 1;
            std::future::ready(format!("run {runs}").into_bytes())
        };
        let value = within("the value", cell.get_or_init(init)).await.unwrap().unwrap();
        assert_eq!((lost.hits(), stored(&server_fixture)), (1, Some(value)), "{fault:?}");
    }
}

#[tokio::test]
async fn a_session_that_ends_while_the_value_is_stored_leaves_the_value_or_nothing() {
    for (fault, expected) in [(Fault::DropReply, "run 1"), (Fault::DropConnectionBefore, "run 2")] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let actor = client(&server_fixture).await;
        let session = server_fixture.sessions_of_actor()[0];
        let when = When::op(Op::Multi).path(VALUE).session(session).always();
        let lost = server_fixture.server.fault(when, fault);
        let value = tokio::spawn({
            let cell = cell(&actor);
            async move {
                let mut runs = 0;
                let init = || {
                    runs += 1;
                    std::future::ready(format!("run {runs}").into_bytes())
                };
                (cell.get_or_init(init).await.unwrap(), runs)
            }
        });
        within("the transaction", lost.hit()).await.unwrap();
        assert!(server_fixture.server.expire(session));
        let (value, runs) = within("the value", value).await.unwrap().unwrap();
        assert_eq!(value, expected.as_bytes());
        // The next head looks for the value before it runs its initialiser.
        assert_eq!(format!("run {runs}"), expected);
        assert_eq!(stored(&server_fixture), Some(value));
        server_fixture.queue_length_becomes(0).await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_and_leaves_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = cell(&server_fixture.rival);
    let refused = here.get_or_init(async || vec![0; 2 << 20]).await.unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
    assert_eq!(stored(&server_fixture), None);
    server_fixture.queue_length_becomes(0).await.unwrap();
    let refused = OnceCell::new(&server_fixture.rival, "/").unwrap_err();
    assert!(matches!(refused, Error::Config(ConfigError::Setting { name: "path", .. })), "{refused}");
    assert_eq!(here.path(), LOCK);
    let manager = client(&server_fixture).await;
    let (waiting, queued) = (cell(&manager), cell(&manager));
    manager.shutdown().await.unwrap();
    assert!(waiting.wait().await.unwrap_err().is_closed());
    assert!(queued.get_or_init(async || Vec::new()).await.unwrap_err().is_closed());
}

#[tokio::test]
async fn an_initialiser_dropped_anywhere_under_any_fault_leaves_no_contender_in_the_queue() {
    let initialise =
        |actor: ConnectionManager| async move { cell(&actor).get_or_init(async || b"value".to_vec()).await };
    dropped_anywhere(&Plain, initialise).await;
}
