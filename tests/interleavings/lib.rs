//! Files of the core and of the recipes, compiled once more, and the worlds in which every interleaving of
//! them is explored.
//!
//! An exploration takes millions of steps, so this package is optimised (`Cargo.toml` of the workspace). The
//! unit tests of the core and of the recipes are not (`tests/lint`): that took longer than they run.
#![cfg(test)]
#![expect(dead_code, unreachable_pub, reason = "the worlds need less than the libraries")]

#[path = "../../recipes/src/limits.rs"]
mod limits;
mod local;
mod sharing;
mod znode;
