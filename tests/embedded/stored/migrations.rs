//! Migrations: each step once over the whole fleet, whatever becomes of the answers and the processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;
use lockkeeper::error::{ErrorKind, MigrationError};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Migrations, Txn};
use lockkeeper_testserver::{Fault, Op, When};

use super::{data, started};
use crate::limit::within;

const PATH: &str = "/migrations/shop";
const FIRST_RECORD: &str = "/migrations/shop/done/0000";

async fn changed(manager: ConnectionManager, by: fn(u32) -> u32) -> Result<Txn<'static>, Error> {
    let (value, stat) = manager.znodes().read("/value").await?.expect("it was created");
    let value: u32 = String::from_utf8(value).unwrap().parse().unwrap();
    Ok(manager.txn().set("/value", by(value).to_string(), stat.version))
}

/// Three steps: one creates a node with 1, one adds 1, and one doubles.
fn steps(manager: &ConnectionManager) -> Migrations {
    Migrations::new(manager, PATH)
        .unwrap()
        .step("create", 1, async |manager| Ok(manager.txn().create("/value", "1")))
        .step("add", 1, |manager| changed(manager, |value| value + 1))
        .step("double", 3, |manager| changed(manager, |value| value * 2))
}

fn reason(error: &Error) -> &MigrationError {
    error.recipe().unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_fleet_that_starts_each_step_is_done_by_one_and_all_wait_for_it() {
    let (server_fixture, manager) = started().await;
    let mut fleet = vec![steps(&manager), steps(&server_fixture.rival)];
    for _ in 0..4 {
        fleet.push(steps(&server_fixture.actor().await.unwrap()));
    }
    let runs = join_all(fleet.iter().map(async |process| {
        let done = process.run().await.unwrap();
        let value = server_fixture.server.inspect(|machine| data(machine, "/value")).unwrap();
        assert_eq!(value, b"4", "it did not wait");
        done.steps
    }));
    let mut done = within("the steps", runs).await.unwrap().concat();
    done.sort();
    assert_eq!(done, ["add", "create", "double"]);
    let recorded = server_fixture.server.inspect(|machine| data(machine, "/migrations/shop/done/0002"));
    assert_eq!(recorded.unwrap(), b"3 double");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_done_once_though_its_answer_is_lost() {
    for position in 0..3 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let (server_fixture, manager) = started().await;
            let record = format!("/migrations/shop/done/000{position}");
            let lost = server_fixture.server.fault(When::op(Op::Multi).path(&record), fault);
            within("the steps", steps(&manager).run()).await.unwrap().unwrap();
            assert!(steps(&manager).run().await.unwrap().steps.is_empty());
            let value = server_fixture.server.inspect(|machine| data(machine, "/value")).unwrap();
            assert_eq!((value, lost.hits()), (b"4".to_vec(), 1), "{fault:?} at {position}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_session_ends_before_the_answer_is_done_once() {
    for fault in [Fault::HoldReply, Fault::HoldRequest] {
        let (server_fixture, manager) = started().await;
        let session = server_fixture.sessions_of_actor()[0];
        manager.znodes().ensure("/migrations/shop/done").await.unwrap();
        let held = server_fixture.server.fault(When::op(Op::Multi).path(FIRST_RECORD), fault);
        let running = tokio::spawn({
            let migrations = steps(&manager);
            async move { migrations.run().await }
        });
        within("the first step", held.hit()).await.unwrap();
        assert!(server_fixture.server.expire(session));
        within("the steps", running).await.unwrap().unwrap().unwrap();
        let value = server_fixture.server.inspect(|machine| data(machine, "/value")).unwrap();
        assert_eq!(value, b"4", "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_step_and_a_newer_program_are_errors_that_name_the_step_and_nothing_is_done() {
    let (server_fixture, manager) = started().await;
    steps(&manager).run().await.unwrap();
    let nothing = async |manager: ConnectionManager| Ok(manager.txn());
    let new = || Migrations::new(&manager, PATH).unwrap();
    let changed = new().step("create", 1, nothing).step("add", 2, nothing).run().await.unwrap_err();
    let MigrationError::Changed { position: 1, name, version: 2, recorded, .. } = reason(&changed) else {
        panic!("{changed}");
    };
    assert_eq!((name.as_str(), recorded.as_str()), ("add", "\"1 add\""));
    assert!(changed.to_string().contains("\"add\" version 2"), "{changed}");
    let moved = new().step("add", 1, nothing).run().await.unwrap_err();
    assert!(matches!(reason(&moved), MigrationError::Changed { position: 0, .. }), "{moved}");
    let older = new().step("create", 1, nothing).run().await.unwrap_err();
    assert!(matches!(reason(&older), MigrationError::Ahead { position: 1, .. }), "{older}");
    assert!([changed, moved, older].iter().all(|error| error.kind() == ErrorKind::Misuse));
    for bad in [new().step("a", 1, nothing).step("a", 1, nothing), new().step(" ", 1, nothing)] {
        assert!(matches!(bad.run().await.unwrap_err(), Error::Config(_)));
    }
    let value = server_fixture.server.inspect(|machine| data(machine, "/value")).unwrap();
    assert_eq!(value, b"4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_fails_is_named_and_the_next_run_goes_on_with_it() {
    let (server_fixture, manager) = started().await;
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let migrations = Migrations::new(&manager, PATH)
        .unwrap()
        .step("create", 1, move |manager: ConnectionManager| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(manager.txn().create("/value", "1")) }
        })
        .step("below", 1, async |manager| Ok(manager.txn().create("/shop/prices", "")));
    let error = migrations.run().await.unwrap_err();
    let MigrationError::Failed { name, .. } = reason(&error) else { panic!("{error}") };
    assert!(name == "below" && error.to_string().contains("its parent /shop does not exist"), "{error}");
    manager.znodes().create("/shop", "", CreateMode::Persistent).await.unwrap();
    let rest = migrations.run().await.unwrap();
    assert_eq!((rest.steps, asked.load(Ordering::SeqCst)), (vec!["below".to_owned()], 1));
    assert!(server_fixture.server.inspect(|machine| data(machine, "/shop/prices").is_some()));
}
