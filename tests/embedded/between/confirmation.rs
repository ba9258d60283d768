//! Faults between the sending of a confirmation and its answer.

use std::time::Duration;

use lockkeeper::{BootInstant, Mutex};
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

const SESSION: Duration = Duration::from_secs(3);

/// The number of tries. The second confirmation has to be sent long enough after the answer to the first.
const TRIES: usize = 10;

#[tokio::test]
async fn a_lease_counts_from_before_its_confirmation_was_sent() {
    for _ in 0..TRIES {
        if is_counted_from_before().await {
            return;
        }
    }
    panic!("no confirmation ever counted");
}

async fn is_counted_from_before() -> bool {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor =
        builder(&server_fixture.server.connect_string()).session_timeout(SESSION).connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let confirmation = |nth| {
        let when = When::op(Op::Multi).session(session).nth(nth);
        server_fixture.server.fault(when, Fault::HoldRequest)
    };
    let guard = Mutex::new(&actor, LOCK).unwrap().acquire().await.unwrap();
    // The first confirmation extends the lease no further than the create before it.
    let (first, third) = (confirmation(2), confirmation(4));
    let opened = guard.valid_until();
    within("a confirmation", first.hit()).await.unwrap();
    let arrived = BootInstant::now();
    // The server handles other requests, which delay the answer.
    server_fixture.round_trip_of_rival().await.unwrap();
    first.release();
    // The third confirmation is sent after the answer to the second, by which the first counts.
    within("another one", third.hit()).await.unwrap();
    let valid_until = guard.valid_until();
    assert!(valid_until <= arrived.after(SESSION - SESSION / 100), "counted from the answer");
    valid_until > opened
}
