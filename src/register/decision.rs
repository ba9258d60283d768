//! What a caller's code decides.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::batch::Decide;
use super::decide::{Change, Current};

/// The value of the last decision, or the panic that ended it.
///
/// The caller's code runs in the task of the register, among the changes of other callers. A panic is that of
/// its own call: nothing is written for it, and it continues where the call is awaited.
pub(super) struct Decision<T>(Arc<Mutex<Option<Decided<T>>>>);

type Decided<T> = Result<T, Box<dyn Any + Send>>;

impl<T> Default for Decision<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }
}

impl<T: Send + 'static> Decision<T> {
    /// `decide`, which records its value here.
    pub(super) fn recorded(
        &self,
        mut decide: impl FnMut(Current<'_>) -> (Change, T) + Send + 'static,
    ) -> Decide {
        let last = Arc::clone(&self.0);
        Box::new(move |current| {
            if matches!(*last.lock(), Some(Err(_))) {
                return Change::Keep;
            }
            match catch_unwind(AssertUnwindSafe(|| decide(current))) {
                Ok((change, value)) => {
                    *last.lock() = Some(Ok(value));
                    change
                }
                Err(panic) => {
                    *last.lock() = Some(Err(panic));
                    Change::Keep
                }
            }
        })
    }

    /// The value. Panics if the decision did.
    pub(super) fn take(&self) -> Option<T> {
        match self.0.lock().take()? {
            Ok(value) => Some(value),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_for_a_call_whose_decision_has_panicked_once() {
        let decision = Decision::default();
        let mut decide = decision.recorded(|current| {
            assert!(current.data().is_some(), "a decision that panics");
            (Change::Write(b"x".to_vec()), ())
        });
        assert_eq!(decide(Current::of(&None)), Change::Keep);
        assert_eq!(decide(Current::pending(b"a")), Change::Keep, "also from another state");
        assert!(catch_unwind(AssertUnwindSafe(|| decision.take())).is_err());
    }
}
