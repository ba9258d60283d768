//! Distributed locks on Apache ZooKeeper.
