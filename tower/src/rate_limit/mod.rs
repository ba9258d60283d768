//! Requests that are admitted by a rate limiter.

mod fields;
mod layer;

pub use self::layer::{RateLimitLayer, RateLimitService};
