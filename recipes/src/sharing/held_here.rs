use lockkeeper_core::HeldHere;

/// The text of a wait, with what of it this manager holds: `what` is such as `the lock is`.
pub(crate) fn with_held_here(text: String, what: &str, held_here: Option<HeldHere>) -> String {
    match held_here {
        Some(held_here) => format!("{text}; {what} {held_here}"),
        None => text,
    }
}
