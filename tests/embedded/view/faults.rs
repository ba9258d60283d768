//! Every request of a view times every fault.

use futures::future::join_all;
use lockkeeper::TreeView;
use lockkeeper::view::ViewState;
use lockkeeper_testserver::{Fault, Op, When};

use super::witness::{Witness, tree_of};
use super::{ROOT, newest_session, put, remove, soon};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};
use crate::strike::{STRIKES, Strike};

/// The requests of a view, and the one that opens its session again.
const REQUESTS: [Op; 7] =
    [Op::Connect, Op::Multi, Op::AddWatch, Op::GetData, Op::MultiRead, Op::GetChildren2, Op::Exists];

/// How many cases run side by side: they mostly wait, for sessions to end.
const SIDE_BY_SIDE: usize = 24;

#[tokio::test]
async fn a_view_is_complete_again_after_every_fault_at_every_request() {
    let cases = STRIKES.iter().flat_map(|strike| REQUESTS.map(|op| (op, *strike)));
    let cases: Vec<_> = cases.collect();
    for cases in cases.chunks(SIDE_BY_SIDE) {
        join_all(cases.iter().map(|(op, strike)| case(*op, *strike))).await;
    }
}

async fn case(op: Op, strike: Strike) {
    let server_fixture = ServerFixture::start().await.unwrap();
    for path in ["", "/a/1", "/a/2", "/b/1"] {
        put(&server_fixture.rival, &format!("{ROOT}{path}"), "before").await;
    }
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let view = TreeView::new(&manager, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let mut witness = Witness::new(view.changes());

    // The view begins anew, and meets the fault in the middle of changes.
    let session = newest_session(&server_fixture);
    let when = When::op(op).session(session);
    let armed = server_fixture.server.fault(when, strike.fault());
    // Until the changes are made, so that the view has to read for them.
    let back = (op != Op::Connect)
        .then(|| server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest));
    server_fixture.server.drop_connections();
    witness.state_is(ViewState::Stale).await;
    put(&server_fixture.rival, &format!("{ROOT}/a/2"), "meanwhile").await;
    put(&server_fixture.rival, &format!("{ROOT}/c/1"), "meanwhile").await;
    remove(&server_fixture.rival, &format!("{ROOT}/b/1")).await;
    put(&server_fixture.rival, &format!("{ROOT}/b/1"), "before").await;
    drop(back);
    let syncing = tokio::spawn(sync_until_answered(view.clone()));
    let striking = strike.carry_out(&server_fixture, session, &armed);
    within(&format!("{strike:?} at {op:?}"), striking).await.unwrap();
    let synced = within(&format!("a sync after {strike:?} at {op:?}"), syncing).await.unwrap();
    synced.unwrap().unwrap();
    witness.state_is(ViewState::Live).await;
    witness.read();
    server_fixture.server.inspect(|machine| {
        assert_eq!(witness.copy(), &tree_of(machine, ROOT, 9), "{strike:?} at {op:?}");
    });
    assert_eq!(witness.recreated, 1, "{strike:?} at {op:?}");
}

/// A sync ends with the operation timeout of the short session here; the view continues.
async fn sync_until_answered(view: TreeView) -> Result<(), lockkeeper::Error> {
    loop {
        match view.sync().await {
            Err(error) if error.is_timeout() => {}
            other => return other.map(|_| ()),
        }
    }
}
