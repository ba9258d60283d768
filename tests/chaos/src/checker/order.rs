//! Tokens show the order of the contenders, and grants follow that order.
//!
//! Of two holds that exclude each other the intervals are apart, so it is certain which was granted first. A
//! token is the creation of the contender's node; so a grant with a smaller token than an earlier one has is
//! a contender that stood in front, with a living node, and was passed over.

use std::collections::BTreeMap;

use super::{Rule, Violation};
use crate::history::{Hold, Mode, Token};

pub(super) fn judge(lock: &str, holds: &[&Hold]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut of_any: Option<&Hold> = None;
    let mut of_writers: Option<&Hold> = None;
    let mut permits: BTreeMap<Token, &Hold> = BTreeMap::new();
    let mut complain = |rule, hold: &Hold, earlier: &Hold| {
        let at = hold.valid.map_or(hold.granted, |(start, _)| start);
        let text = format!("{} is granted after {}", hold.title(), earlier.title());
        violations.push(Violation { rule, lock: lock.to_owned(), at, text });
    };
    for hold in holds {
        if let Some(nested) = hold.again.iter().find(|token| **token != hold.token) {
            complain(Rule::Token, &Hold { token: *nested, ..(*hold).clone() }, hold);
        }
        // A grant that was never seen to be valid may be written down long after it happened.
        if hold.valid.is_none() {
            continue;
        }
        match hold.mode {
            Mode::Permits(_) => {
                if let Some(other) = permits.insert(hold.token, hold) {
                    complain(Rule::Token, hold, other);
                }
            }
            Mode::Alone => {
                if let Some(earlier) = of_any.filter(|earlier| earlier.token >= hold.token) {
                    complain(Rule::Order, hold, earlier);
                }
                of_writers = greater(of_writers, hold);
                of_any = greater(of_any, hold);
            }
            Mode::Reading => {
                // A writer that became a reader keeps its token.
                let passed = |writer: &&Hold| {
                    writer.token > hold.token || writer.token == hold.token && !writer.same_owner(hold)
                };
                if let Some(writer) = of_writers.filter(passed) {
                    complain(Rule::Order, hold, writer);
                }
                of_any = greater(of_any, hold);
            }
        }
    }
    violations
}

fn greater<'a>(highest: Option<&'a Hold>, hold: &'a Hold) -> Option<&'a Hold> {
    highest.filter(|highest| highest.token >= hold.token).or(Some(hold))
}
