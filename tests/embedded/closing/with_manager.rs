//! A manager for a part of a program: on every way out, the session is closed and its nodes are gone.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper::{ConnectionManager, Error, Mutex, with_manager};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, queue_nodes};

type WorkResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The session outlives every test, unless it is closed.
fn settings(fixture: &ServerFixture) -> ConnectionManagerBuilder {
    builder(&fixture.server.connect_string()).session_timeout(Duration::from_secs(60))
}

/// Takes the lock, and gives it up only with the session.
async fn take(manager: &ConnectionManager) -> WorkResult<()> {
    std::mem::forget(Mutex::new(manager, LOCK)?.acquire().await?);
    Ok(())
}

fn assert_closed(fixture: &ServerFixture) {
    assert_eq!(fixture.server.inspect(queue_nodes), Vec::<String>::new(), "the session is closed");
}

#[tokio::test]
async fn a_value_and_an_error_of_the_work_come_after_the_shutdown() {
    let fixture = ServerFixture::start().await.unwrap();
    let value: WorkResult<u32> = with_manager(settings(&fixture), async |manager| {
        take(&manager).await?;
        Ok(7)
    })
    .await;
    assert_eq!(value.unwrap(), 7);
    assert_closed(&fixture);

    let failed: WorkResult<()> = with_manager(settings(&fixture), async |manager| {
        take(&manager).await?;
        Err("a fault of the work".into())
    })
    .await;
    assert_eq!(failed.unwrap_err().to_string(), "a fault of the work");
    assert_closed(&fixture);
}

#[tokio::test]
async fn a_panic_of_the_work_is_passed_on_after_the_shutdown() {
    let fixture = ServerFixture::start().await.unwrap();
    let working = with_manager(settings(&fixture), async |manager| -> WorkResult<()> {
        take(&manager).await?;
        panic!("a fault of the work")
    });
    let panic = AssertUnwindSafe(working).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a fault of the work"));
    assert_closed(&fixture);
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_passed_on_after_the_shutdown() {
    let fixture = ServerFixture::start().await.unwrap();
    let before = fixture.server.sessions();
    let working = with_manager(settings(&fixture), |_| -> std::future::Ready<WorkResult<()>> {
        panic!("a fault of the work")
    });
    AssertUnwindSafe(working).catch_unwind().await.unwrap_err();
    assert_eq!(fixture.server.sessions(), before);
}

#[tokio::test]
async fn a_dropped_call_is_shut_down_in_the_background_whoever_has_a_clone() {
    let fixture = ServerFixture::start().await.unwrap();
    let (given, clone) = tokio::sync::oneshot::channel();
    let working = with_manager(settings(&fixture), async move |manager| -> WorkResult<()> {
        take(&manager).await?;
        drop(given.send(manager.clone()));
        std::future::pending().await
    });
    let working = tokio::spawn(working);
    let manager = within("a held lock", clone).await.unwrap().unwrap();
    working.abort();
    assert!(working.await.unwrap_err().is_cancelled());
    let closed = fixture.server.wait_until(|machine| queue_nodes(machine).is_empty());
    within("the end of the session", closed).await.unwrap();
    assert!(matches!(Mutex::new(&manager, LOCK).unwrap().acquire().await, Err(Error::Closed)));
}

#[tokio::test]
async fn the_work_does_not_run_without_a_connection() {
    let settings = ConnectionManager::builder("127.0.0.1:1").connect_deadline(Duration::from_millis(50));
    let failed: WorkResult<()> = with_manager(settings, async |_| panic!("it has no manager")).await;
    assert!(failed.unwrap_err().is::<lockkeeper::error::ConnectError>());
}
