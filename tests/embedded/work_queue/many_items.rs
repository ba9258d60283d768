//! A hundred thousand items.

use std::collections::BTreeSet;
use std::time::Duration;

use lockkeeper::error::WorkQueueError;
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, When};

use super::{OPS, client, queue, server};
use crate::limit::within;
use crate::server_fixture::{LOCK, children};

const ITEMS: usize = 100_000;

/// Of one transaction.
const BATCH: usize = 2_500;

/// What one taker takes alone, and what several take then.
const ALONE: usize = 1_500;
const TAKERS: usize = 4;
const EACH: usize = 250;

fn lists(machine: &Machine) -> Vec<Vec<String>> {
    let names = children(machine, LOCK).into_iter().filter(|name| name.starts_with("items"));
    names.map(|name| children(machine, &format!("{LOCK}/{name}"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_items_are_taken_in_order_and_no_list_is_long() {
    let server_fixture = server().await;
    let (producer, taker) = (queue(&server_fixture.rival), queue(&client(&server_fixture).await));
    let values: Vec<String> = (0..ITEMS).map(|number| format!("{number:06}")).collect();
    for values in values.chunks(BATCH) {
        within("a put", producer.put_all(values)).await.unwrap().unwrap();
    }
    let full = producer.put(&"more".to_owned()).await.unwrap_err();
    assert!(matches!(full.recipe(), Some(WorkQueueError::Full { items: 100_000, .. })), "{full}");

    let lists = server_fixture.server.inspect(lists);
    assert_eq!((lists.len(), lists.iter().map(Vec::len).sum::<usize>()), (10, ITEMS));
    // A name in an answer has four bytes more.
    let longest = lists.iter().map(|names| names.iter().map(|name| name.len() + 4).sum::<usize>()).max();
    assert!(longest.unwrap() < 200_000, "{longest:?}");

    let session = server_fixture.sessions_of_actor()[0];
    let count = |when: When| {
        server_fixture.server.fault(when.session(session).always(), Fault::DelayReply(Duration::ZERO))
    };
    let requests = count(When::ops(OPS));
    for value in &values[..ALONE] {
        let item = within("an item", taker.take()).await.unwrap().unwrap();
        assert_eq!(item.value(), value);
        within("the end", item.done()).await.unwrap().unwrap();
    }
    // The worker, a look that lists all ten directories, one that lists the first and the last again, and the
    // reads: one for 33 items, if the machine is fast.
    let beside = requests.hits() - 2 * u64::try_from(ALONE).unwrap();
    assert!(beside < 200, "{beside} requests besides the two of each item");
    requests.disarm();

    let mut takers = tokio::task::JoinSet::new();
    for number in 0..TAKERS {
        let of_process = if number % 2 == 0 { taker.clone() } else { producer.clone() };
        takers.spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..EACH {
                let item = of_process.take().await.unwrap();
                taken.push(item.value().clone());
                item.done().await.unwrap();
            }
            taken
        });
    }
    let taken = within("the takers", takers.join_all()).await.unwrap().concat();
    let once: BTreeSet<&String> = taken.iter().collect();
    assert_eq!(once.len(), TAKERS * EACH);
    let last = once.last().unwrap().parse::<usize>().unwrap();
    // Takers that meet take from among 1,024 items at most.
    assert!(last < ALONE + TAKERS * EACH + 1_100, "{last} is far from the head");
    producer.put(&"more".to_owned()).await.unwrap();
}
