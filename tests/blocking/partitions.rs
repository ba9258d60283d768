//! Partitions, for threads.

use std::thread;
use std::time::Duration;

use lockkeeper::blocking::{CannotBlock, Partition};
use lockkeeper::{Error, ReleaseReason, ViewBounds};
use lockkeeper_tests::Timing;

use crate::support::{aside, connect, is_refused, server};

#[test]
fn a_thread_gets_items_and_gives_them_up_when_it_is_asked_to() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let partition = Partition::new(&here, "/shards").unwrap();
    partition.add(["x"]).unwrap();
    assert_eq!(partition.items().unwrap(), ["x"]);
    let mut member = partition.join("a").unwrap();
    let item = member.next_timeout(Timing::event()).unwrap().unwrap();
    assert_eq!((item.item(), item.wait_release_requested(Duration::ZERO)), ("x", None));
    assert!(member.next_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    let is_other = |id: &&str| Partition::owner_among("x", ["a", id]) == Some(id);
    let id = ["b", "c", "d", "e"].into_iter().find(is_other).unwrap();
    let mut other = Partition::new(&there, "/shards").unwrap().join(id).unwrap();
    assert_eq!(item.wait_release_requested(Timing::event()), Some(ReleaseReason::Moved));
    item.release().unwrap();
    let moved = other.next_timeout(Timing::event()).unwrap().unwrap();
    assert_eq!(other.settled(Timing::event()).unwrap().fencing_token("x"), Some(moved.fencing_token()));
    assert_eq!(partition.inspect().unwrap().items()[0].owner(), Some(id));
    drop(moved);
    other.leave().unwrap();
    let again = member.next_timeout(Timing::event()).unwrap().unwrap();
    partition.remove(["x"]).unwrap();
    assert!(again.wait_release_requested(Timing::event()).is_some());
    again.release().unwrap();
    assert_eq!(member.settled(Timing::event()).unwrap().held().count(), 0);
    here.shutdown().unwrap();
    assert!(member.next().unwrap().is_none());
}

#[test]
fn a_wait_for_an_item_within_a_task_is_refused() {
    let server = server();
    let manager = connect(&server);
    let partition = Partition::new(&manager, "/shards").unwrap();
    let mut member = partition.join("a").unwrap();
    aside(async {
        for refused in [partition.items().err(), partition.join("b").err(), member.next().err()] {
            assert!(
                refused.as_ref().is_some_and(|error| error.recipe::<CannotBlock>().is_some()),
                "{refused:?}"
            );
        }
        // What does not wait works.
        assert_eq!(member.assigned().share().held().count(), 0);
    });
}

#[test]
fn a_thread_follows_the_share_of_a_member() {
    let server = server();
    let manager = connect(&server);
    let partition = Partition::new(&manager, "/shards").unwrap();
    partition.add(["x", "y"]).unwrap();
    let mut member = partition.join_within("a", ViewBounds::default()).unwrap();
    assert_eq!(member.partition().path(), partition.path());
    let mut shares = member.assigned();
    while !(shares.share().is_settled() && shares.share().held().count() == 2) {
        shares.changed_timeout(Timing::event()).unwrap();
    }
    let quiet = loop {
        if let Err(error) = shares.changed_timeout(Duration::from_millis(1)) {
            break error;
        }
    };
    assert!(matches!(&quiet, Error::Timeout { path, .. } if path.as_str() == "/shards"), "{quiet}");
    // Another watch begins with the share of now.
    assert_eq!(member.assigned().changed().unwrap().mine().collect::<Vec<_>>(), ["x", "y"]);
    let item = member.next_timeout(Timing::event()).unwrap().unwrap();
    aside(async { assert!(is_refused(&shares.changed())) });
    let gone = item.item().to_owned();
    let after = thread::scope(|threads| {
        let following = threads.spawn(|| {
            while shares.share().fencing_token(&gone).is_some() {
                shares.changed_timeout(Timing::event()).unwrap();
            }
            shares.share().held().count()
        });
        partition.remove([&gone]).unwrap();
        item.wait_release_requested(Timing::event()).unwrap();
        item.release().unwrap();
        following.join().unwrap()
    });
    assert_eq!(after, 1);
    let members = partition.group().unwrap().members().unwrap();
    members.sync().unwrap();
    assert_eq!(members.ids(), ["a"]);
    member.leave().unwrap();
    let ended = loop {
        if let Err(error) = shares.changed_timeout(Timing::event()) {
            break error;
        }
    };
    assert!(ended.is_closed(), "{ended}");
}
