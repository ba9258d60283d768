//! Every request of a registration times every fault.

use std::time::Duration;

use futures::future::join_all;
use lockkeeper::presence::PresenceState;
use lockkeeper_testserver::{Op, When};

use super::{PATH, gone, node, register, state_is};
use crate::limit::{becomes, within};
use crate::server_fixture::{SESSION, ServerFixture, builder};
use crate::strike::{STRIKES, Strike};

/// The requests of a registration, and the one that opens its session again: which of its kind is struck. The
/// second create follows that of the parents, the second read a reconnect.
const REQUESTS: [(Op, u64); 10] = [
    (Op::Connect, 1),
    (Op::Create2, 1),
    (Op::Create2, 2),
    (Op::CreateContainer, 1),
    (Op::GetData, 1),
    (Op::GetData, 2),
    (Op::SetData, 1),
    (Op::GetEphemerals, 1),
    (Op::Exists, 1),
    (Op::Delete, 1),
];

/// How many cases run side by side: they mostly wait, for sessions to end.
const SIDE_BY_SIDE: usize = 25;

#[tokio::test]
async fn a_registration_is_back_after_every_fault_at_every_request() {
    let cases = STRIKES.iter().flat_map(|strike| REQUESTS.map(|request| (request, *strike)));
    let cases: Vec<_> = cases.collect();
    for cases in cases.chunks(SIDE_BY_SIDE) {
        join_all(cases.iter().map(|(request, strike)| case(*request, *strike))).await;
    }
}

async fn case((op, nth): (Op, u64), strike: Strike) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let armed = server_fixture.server.fault(When::op(op).session(session).nth(nth), strike.fault());
    let striking = strike.carry_out(&server_fixture, session, &armed);
    let living = async {
        let registration = register(&manager, "first");
        let mut watch = registration.watch();
        state_is(&mut watch, PresenceState::is_registered).await;
        server_fixture.server.drop_connections();
        // The call may end with its time; the data is written all the same.
        let _ = registration.set_data("second").await;
        let is_ours = |machine: &lockkeeper_testserver::machine::Machine| {
            node(machine).is_some_and(|(owner, data)| data == "second" && machine.sessions().contains(&owner))
        };
        let what = format!("the data after {strike:?} at {op:?}");
        within(&what, server_fixture.server.wait_until(is_ours)).await.unwrap();
        let what = format!("registered after {strike:?} at {op:?}");
        let agrees = async {
            loop {
                let czxid = registration.registered().await.unwrap();
                let stat = server_fixture.rival.znodes().read(PATH).await;
                if stat.is_ok_and(|stat| stat.is_some_and(|(_, stat)| stat.czxid == czxid)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(&what, agrees).await.unwrap();
        if op == Op::Exists {
            // Without a connection, the delete follows only after a look at the owner.
            server_fixture.server.drop_connections();
        }
        drop(registration);
        gone(&server_fixture).await;
        let what = format!("the clean-up after {strike:?} at {op:?}");
        becomes(&what, || manager.health().pending_deletes == 0).await.unwrap();
        assert_eq!(server_fixture.server.inspect(node), None, "{strike:?} at {op:?}");
        assert_eq!(armed.hits(), 1, "{strike:?} at request {nth} of {op:?}");
    };
    tokio::select! {
        () = living => {}
        () = async { striking.await; std::future::pending::<()>().await } => {}
    }
}
