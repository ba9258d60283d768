//! A part of the cases of a long test in every run, and all of them where they are asked for.

use std::env;

/// One case of so many.
const PART: usize = 6;

/// Every sixth case; the first one depends on the name of the test, so that tests of one scenario on several
/// recipes have other ones. All cases in a soak, and with `LOCKKEEPER_CASES=all`.
pub(crate) fn sampled<T>(cases: Vec<T>) -> Vec<T> {
    let are_all_wanted = env::var_os("LOCKKEEPER_SOAK").is_some()
        || env::var("LOCKKEEPER_CASES").is_ok_and(|wanted| wanted == "all");
    if are_all_wanted || cases.len() < PART {
        return cases;
    }
    // libtest names the thread of a test after it.
    let test = std::thread::current().name().map(str::to_owned).unwrap_or_default();
    let first = test.bytes().map(usize::from).sum::<usize>() % PART;
    cases.into_iter().skip(first).step_by(PART).collect()
}
