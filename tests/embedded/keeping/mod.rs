//! A mutex that keeps its node: who of its process comes next, when the node has to go, and what is never passed on.

mod ending;
mod fixture;
mod linger;
mod passing;
