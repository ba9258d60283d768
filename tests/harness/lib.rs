//! Test harness of lockkeeper: real ZooKeeper servers with fault verbs.
