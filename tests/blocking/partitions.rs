//! Partitions, for threads.

use std::time::Duration;

use lockkeeper::blocking::Partition;
use lockkeeper::{ConfigError, Error, ReleaseReason};
use lockkeeper_tests::Timing;

use crate::support::{aside, connect, server};

#[test]
fn a_thread_gets_items_and_gives_them_up_when_it_is_asked_to() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let partition = Partition::new(&here, "/shards").unwrap();
    partition.add(["x"]).unwrap();
    assert_eq!(partition.items().unwrap(), ["x"]);
    let mut member = partition.join("a").unwrap();
    let item = member.next_item_timeout(Timing::event()).unwrap().unwrap();
    assert_eq!((item.item(), item.wait_release_requested(Duration::ZERO)), ("x", None));
    assert!(member.next_item_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    let is_other = |id: &&str| lockkeeper::Partition::owner_among("x", ["a", id]) == Some(id);
    let id = ["b", "c", "d", "e"].into_iter().find(is_other).unwrap();
    let mut other = Partition::new(&there, "/shards").unwrap().join(id).unwrap();
    assert_eq!(item.wait_release_requested(Timing::event()), Some(ReleaseReason::Moved));
    item.release().unwrap();
    let moved = other.next_item_timeout(Timing::event()).unwrap().unwrap();
    assert_eq!(other.settled(Timing::event()).unwrap().fencing_token("x"), Some(moved.fencing_token()));
    assert_eq!(partition.inspect().unwrap().items()[0].owner(), Some(id));
    drop(moved);
    other.leave().unwrap();
    let again = member.next_item_timeout(Timing::event()).unwrap().unwrap();
    partition.remove(["x"]).unwrap();
    assert!(again.wait_release_requested(Timing::event()).is_some());
    again.release().unwrap();
    assert_eq!(member.settled(Timing::event()).unwrap().held().count(), 0);
    here.shutdown().unwrap();
    assert!(member.next_item().unwrap().is_none());
}

#[test]
fn a_wait_for_an_item_within_a_task_is_refused() {
    let server = server();
    let manager = connect(&server);
    let partition = Partition::new(&manager, "/shards").unwrap();
    let mut member = partition.join("a").unwrap();
    aside(async {
        for refused in [partition.items().err(), partition.join("b").err(), member.next_item().err()] {
            assert!(matches!(refused, Some(Error::Config(ConfigError::CannotBlock))), "{refused:?}");
        }
        // What does not wait works.
        assert_eq!(member.share().held().count(), 0);
    });
}
