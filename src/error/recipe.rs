use std::error::Error;

use lockkeeper_lock::{ErrorKind, FencingTokenError};

use super::outcome::Outcome;

/// An error that can be told by its type. Every error is one: the oldest Rust makes no `dyn Error` of a
/// `dyn RecipeError` by itself.
#[doc(hidden)]
pub trait TypedError: Error {
    /// The error itself.
    fn as_error(&self) -> &(dyn Error + 'static);
}

impl<E: Error + 'static> TypedError for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}

/// An error of one recipe, which [`Error::Recipe`](crate::Error::Recipe) carries.
///
/// A recipe implements this for the type of its own errors. `?` and `into()` then make an
/// [`Error`](crate::Error) of them, so all methods of all recipes have one error type. A caller gets the
/// recipe's error back by [`Error::recipe`](crate::Error::recipe).
///
/// # Examples
///
/// ```
/// use lockkeeper_core::{Error, RecipeError};
///
/// #[derive(Debug, thiserror::Error)]
/// enum TurnstileError {
///     #[error("{path} has admitted {visits} visitors, and admits no more")]
///     Full { path: String, visits: u64 },
/// }
///
/// // Another try does not help, and nothing was written: the defaults.
/// impl RecipeError for TurnstileError {}
///
/// let error = Error::from(TurnstileError::Full { path: "/museum".to_owned(), visits: 3 });
/// assert!(matches!(error.recipe(), Some(TurnstileError::Full { visits: 3, .. })));
/// assert!(!error.is_transient() && !error.outcome_unknown());
/// assert_eq!(error.to_string(), "/museum has admitted 3 visitors, and admits no more");
/// ```
pub trait RecipeError: TypedError + Error + Send + Sync + 'static {
    /// What the error means for the caller: [`Error::kind`](crate::Error::kind), unless the
    /// [outcome](Self::outcome) is unknown. Default: [`Recipe`](ErrorKind::Recipe).
    fn kind(&self) -> ErrorKind {
        ErrorKind::Recipe
    }

    /// Whether trying again can help: [`Error::is_transient`](crate::Error::is_transient). Default: no. It
    /// has no effect if the [outcome](Self::outcome) is unknown.
    fn is_transient(&self) -> bool {
        false
    }

    /// What is known of the write that was asked for: [`Error::outcome`](crate::Error::outcome). Default:
    /// [`NotApplied`](Outcome::NotApplied).
    fn outcome(&self) -> Outcome {
        Outcome::NotApplied
    }
}

impl RecipeError for FencingTokenError {}

#[cfg(test)]
mod tests {
    use std::fmt::{self, Display, Formatter};

    use super::*;
    use crate::error;

    #[derive(Debug)]
    struct Jammed;

    #[derive(Debug)]
    struct Busy;

    #[derive(Debug)]
    struct Closed;

    impl Display for Jammed {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            formatter.write_str("jammed")
        }
    }

    impl Display for Busy {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            formatter.write_str("busy")
        }
    }

    impl Display for Closed {
        fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
            formatter.write_str("closed")
        }
    }

    impl Error for Jammed {}
    impl Error for Busy {}
    impl Error for Closed {}

    impl RecipeError for Jammed {
        fn is_transient(&self) -> bool {
            true
        }

        fn outcome(&self) -> Outcome {
            Outcome::Unknown
        }
    }

    impl RecipeError for Busy {
        fn is_transient(&self) -> bool {
            true
        }
    }

    impl RecipeError for Closed {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Misuse
        }
    }

    #[test]
    fn the_error_of_a_recipe_says_whether_to_try_again_and_what_was_written() {
        let (jammed, closed) = (error::Error::from(Jammed), error::Error::from(Closed));
        let busy = error::Error::from(Busy);
        assert!(
            jammed.outcome_unknown() && !jammed.is_transient(),
            "a second write could be applied as well"
        );
        assert!(busy.is_transient() && busy.outcome() == Outcome::NotApplied);
        assert!(!closed.is_transient() && closed.outcome() == Outcome::NotApplied);
        assert_eq!((jammed.kind(), closed.kind()), (ErrorKind::Unknown, ErrorKind::Misuse));
        assert!(jammed.recipe::<Jammed>().is_some() && jammed.clone().recipe::<Closed>().is_none());
        assert!(error::Error::Closed.recipe::<Closed>().is_none());
        assert_eq!(format!("{jammed} {closed}"), "jammed closed");
    }
}
