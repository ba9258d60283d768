//! Finds every guard of a condition in Rust sources: each operand of `&&` and `||`, the condition of each
//! `if` and `while`, the guard of each arm, and each predicate such as that of `filter`.
//!
//! A mutant drops one of them: see `tests/mutants/guards`.

mod finder;
mod guard;
mod macros;
#[cfg(test)]
mod tests;

use syn::visit::Visit;

pub use guard::{Becomes, Found, Guard};

/// The guards in the text of a file, in the order of their positions.
///
/// # Errors
///
/// If the text is not Rust.
pub fn guards(text: &str) -> syn::Result<Found> {
    let file = syn::parse_file(text)?;
    let mut finder = finder::Finder::default();
    finder.visit_file(&file);
    let mut found = finder.found;
    found.guards.sort_by_key(|guard| (guard.span.start, std::cmp::Reverse(guard.span.end)));
    Ok(found)
}
