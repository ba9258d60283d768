//! Java Curator's own locks and ours are one lock.
//!
//! These tests need Debian's packages `libcurator-recipes-java` and `default-jdk-headless`, besides
//! `zookeeper`.

mod additions;
mod barriers;
mod caches;
mod contention;
mod crashes;
mod discovery;
mod election;
mod fixture;
mod group;
mod kazoo;
mod keeping;
mod kills;
mod multi;
mod nodes;
mod one_queue;
mod out_of_turn;
mod partition;
mod peer_slot;
mod queues;
mod registration;
mod revoke;
mod rw;
mod semaphore;
mod shared;
mod values;
