//! The code in the README and the pages of `docs`, compiled with the doc tests so that it stays true.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/operations.md")]
struct Operations;

#[cfg(doctest)]
#[doc = include_str!("../../docs/migrating-from-curator.md")]
struct MigratingFromCurator;

#[cfg(doctest)]
#[doc = include_str!("../../docs/migrating-from-kazoo.md")]
struct MigratingFromKazoo;
