//! What the example applications share.
