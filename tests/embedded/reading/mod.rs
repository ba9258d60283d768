//! Readers of one process that share a node: which readers join, and what a writer waits for.

mod ending;
mod fixture;
mod joining;
