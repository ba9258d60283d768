/// The outcome of a write, after its answer or without one.
///
/// Only a definite answer of the server is [`NotApplied`](Self::NotApplied). After any other failure the
/// write may be applied, and the caller has to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The write was applied.
    Applied,
    /// The write was certainly not applied.
    NotApplied,
    /// The write may be applied.
    Unknown,
}
