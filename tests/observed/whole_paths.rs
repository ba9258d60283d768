//! A path in the log is that on the servers, with the chroot: the log is read beside those of other programs.

use std::ops::ControlFlow;
use std::time::Duration;

use lockkeeper::{ConnectionManager, Election, Partition, Schedule};

use crate::seen::Seen;
use crate::{SESSION, TICK, server};

#[tokio::test]
async fn log_lines_of_recipes_have_the_path_with_the_chroot() {
    let (seen, _listening) = Seen::begin();
    let server = server().await;
    let servers = format!("{}/shop", server.connect_string());
    let builder = ConnectionManager::builder(&servers).session_timeout(SESSION).tick_time(TICK);
    let manager = builder.connect().await.unwrap();

    let partition = Partition::new(&manager, "/tables").unwrap();
    partition.add(["a", "b"]).await.unwrap();
    let mut member = partition.join("one").unwrap();
    let item = member.next().await.unwrap();
    let election = Election::new(&manager, "/leader", "one").unwrap();
    election.lead(async |_leadership| ControlFlow::Break(())).await.unwrap();
    let schedule = Schedule::new(&manager, "/slots", Duration::from_secs(3_600)).unwrap();
    drop((schedule.try_due().await.unwrap(), item));

    for entry in seen.all() {
        let path = entry.field("path");
        let is_of_a_recipe = entry.target.starts_with("lockkeeper") && !path.is_empty();
        assert!(!is_of_a_recipe || path.starts_with("/shop"), "{entry:?}");
    }
    let shares = seen.events("the share of a member");
    assert_eq!(shares[0].field("path"), "/shop/tables");
    manager.shutdown().await.unwrap();
}
