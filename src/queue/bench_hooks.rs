//! Access to the judgement of a list, for benchmarks. **No part of the public interface.**

use super::rule::{ListJudgement, Rule};

impl Rule {
    /// How many contenders are ahead of `me` in this list. `None` where a list alone does not decide.
    #[doc(hidden)]
    pub fn lower_in(&self, children: &[String], me: &str) -> Option<usize> {
        match self.judge(children, me, &[]) {
            ListJudgement::Held => Some(0),
            ListJudgement::WaitFor(lower) => Some(lower.len()),
            _ => None,
        }
    }
}
