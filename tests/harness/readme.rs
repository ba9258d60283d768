//! The code in the README, compiled with the doc tests so that it stays true.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
