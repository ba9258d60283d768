//! An in-process ZooKeeper look-alike for tests and demos. Never for production data.
