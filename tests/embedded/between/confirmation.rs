//! Between the sending of a confirmation and its answer.

use std::time::Duration;

use lockkeeper::{BootInstant, Mutex};
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

const SESSION: Duration = Duration::from_secs(3);

/// How often it is tried, until the second confirmation was sent long enough after the first one's answer.
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
    // The very first one is as good as the create it follows.
    let (first, third) = (confirmation(2), confirmation(4));
    let opened = guard.valid_until();
    within("a confirmation", first.hit()).await.unwrap();
    let arrived = BootInstant::now();
    // The world moves on, and the answer comes later than the request by as much.
    server_fixture.round_trip_of_rival().await.unwrap();
    first.release();
    // Sent behind the second one's answer, by which the first one counts.
    within("another one", third.hit()).await.unwrap();
    let valid_until = guard.valid_until();
    assert!(valid_until <= arrived.after(SESSION - SESSION / 100), "counted from the answer");
    valid_until > opened
}
