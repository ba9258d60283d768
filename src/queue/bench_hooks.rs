//! The judging of a line, for those who measure it. **No part of the public interface.**

use super::rule::{Rule, Verdict};

impl Rule {
    /// How many are in front of `me` in this listing; `None` where a listing alone does not tell.
    #[doc(hidden)]
    pub fn lower_in(&self, children: &[String], me: &str) -> Option<usize> {
        match self.judge(children, me, &[]) {
            Verdict::Held => Some(0),
            Verdict::WaitFor(lower) => Some(lower.len()),
            _ => None,
        }
    }
}
