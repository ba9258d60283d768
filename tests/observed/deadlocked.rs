//! Owners of one manager that wait for each other.

use lockkeeper::metrics as names;
use lockkeeper_tests::Take::Lock;
use lockkeeper_tests::{Circle, Timing, eventually};

use crate::connected;
use crate::recorded::recorder;
use crate::seen::Seen;

#[tokio::test]
async fn owners_of_one_manager_that_wait_for_each_other_are_logged_and_counted() {
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (seen, _listening) = Seen::begin();
    let (_server, manager) = connected().await;
    let rows = [(Lock("/locks/a"), Lock("/locks/b")), (Lock("/locks/b"), Lock("/locks/a"))];
    let _circle = Circle::start(&[manager], &rows);

    let message = "owners of this process wait for each other: a deadlock, unless one gives up";
    let line = async || seen.events(message).into_iter().next();
    let line = eventually("the circle is logged", Timing::settle(), line).await.unwrap();
    let chain = line.field("chain");
    for part in ["owner 0 waits for /locks/b", "owner 1 waits for /locks/a"] {
        assert!(chain.contains(part), "{part}: {chain}");
    }
    assert_eq!(recorded.value(names::OWNER_DEADLOCKS_TOTAL), 1.0);
}
