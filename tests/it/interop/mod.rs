//! Java Curator's own `InterProcessMutex` and our mutexes are one lock.
//!
//! These tests need Debian's packages `libcurator-recipes-java` and `default-jdk-headless`, besides
//! `zookeeper`.

mod contention;
mod crashes;
mod nodes;
mod one_line;
mod scene;
mod semaphore;
