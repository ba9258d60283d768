use std::sync::Arc;

use parking_lot::Mutex;

use super::{Occasion, Subject};

/// A received request, or an event that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Request or event.
    pub subject: Subject,
    /// The paths it names; several for a transaction.
    pub paths: Vec<String>,
    /// The session it belongs to; for a connect request the one it asks for; 0 if none.
    pub session: i64,
    /// The server that handles it, counted from 0.
    pub server: usize,
}

impl From<&Occasion<'_>> for Passed {
    fn from(occasion: &Occasion<'_>) -> Self {
        Self {
            subject: occasion.subject,
            paths: occasion.paths.iter().map(|path| (*path).to_owned()).collect(),
            session: occasion.session,
            server: occasion.server,
        }
    }
}

/// Everything that passes, in its order, until this is dropped.
///
/// It has every message that a fault may match, so the n-th entry of a kind is the n-th match of a
/// [`When`](super::When).
#[derive(Debug)]
#[must_use = "nothing is written down once this is dropped"]
pub struct Transcript(pub(super) Arc<Mutex<Vec<Passed>>>);

impl Transcript {
    /// The messages so far.
    pub fn passed(&self) -> Vec<Passed> {
        self.0.lock().clone()
    }
}
