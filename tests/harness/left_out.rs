//! Tests on a machine without ZooKeeper: they fail, unless they are left out on purpose.

use std::io::{self, Write};
use std::{env, thread};

/// Whether tests on real servers are to be left out (`LOCKKEEPER_WITHOUT_ZOOKEEPER=1`), which is then said
/// aloud.
///
/// Without the variable a test that finds no ZooKeeper fails with the message of what to install: a missing
/// package must never look like a passing test.
///
/// # Examples
///
/// ```
/// # async fn test() -> Result<(), lockkeeper_tests::HarnessError> {
/// if lockkeeper_tests::left_out() {
///     return Ok(());
/// }
/// let ensemble = lockkeeper_tests::Ensemble::start(1).await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn left_out() -> bool {
    let left_out = env::var("LOCKKEEPER_WITHOUT_ZOOKEEPER").is_ok_and(|value| value == "1");
    if left_out {
        say("LEFT OUT (LOCKKEEPER_WITHOUT_ZOOKEEPER=1)", "needs a real ZooKeeper");
    }
    left_out
}

/// Says aloud that the test is left out because a package that is no part of the set-up is not installed.
pub fn leave_out_without(package: &str) {
    say("LEFT OUT", &format!("needs the package {package}"));
}

fn say(begin: &str, need: &str) {
    let thread = thread::current();
    // Written past the test runner's capture, which would hide it as the test passes.
    let _ = writeln!(io::stderr(), "{begin}: {} {need}", thread.name().unwrap_or("a test"));
}
