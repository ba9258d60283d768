//! Every request of a member times every fault, and a member that is dropped at any of them.

use std::sync::Arc;

use futures::future::join_all;
use lockkeeper::Error;
use lockkeeper_test_recipes::partition::Board;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{PATH, Worker, expected, items, nothing_is_left, partition, session_of, settled};
use crate::limit::within;
use crate::presence::newest_session;
use crate::server_fixture::{SESSION, ServerFixture, builder};
use crate::strike::{STRIKES, Strike};

/// The requests of a member in the session of its locks.
const OF_LOCKS: [Op; 7] =
    [Op::Create2, Op::GetData, Op::GetChildren, Op::SetData, Op::Exists, Op::Multi, Op::Delete];

/// The requests of its views, in a session of their own.
const OF_VIEWS: [Op; 5] = [Op::Connect, Op::AddWatch, Op::GetData, Op::GetChildren2, Op::Multi];

/// How many cases run side by side: they mostly wait, for sessions to end.
const SIDE_BY_SIDE: usize = 30;

#[tokio::test]
async fn each_item_is_with_one_member_after_every_fault_at_every_request() {
    let of_locks = STRIKES.iter().flat_map(|strike| OF_LOCKS.map(|op| (op, *strike, false)));
    let of_views = STRIKES.iter().flat_map(|strike| OF_VIEWS.map(|op| (op, *strike, true)));
    let cases: Vec<_> = of_locks.chain(of_views).collect();
    let mut missed = Vec::new();
    for cases in cases.chunks(SIDE_BY_SIDE) {
        let hits = cases.iter().map(|(op, strike, is_of_views)| case(*op, *strike, *is_of_views));
        let hits = join_all(hits).await.into_iter().zip(cases);
        missed.extend(hits.filter(|(hits, _)| *hits == 0).map(|(_, case)| *case));
    }
    assert!(missed.is_empty(), "these cases struck nothing: {missed:?}");
}

/// Returns how often the fault has struck.
async fn case(op: Op, strike: Strike, is_of_views: bool) -> u64 {
    let what = format!("{strike:?} at {op:?}, of the views: {is_of_views}");
    let server_fixture = ServerFixture::start().await.unwrap();
    let (mut items, board) = (items(4), Arc::new(Board::default()));
    let admin = partition(&server_fixture.rival);
    admin.add(&items).await.unwrap();
    let rival = Worker::of(server_fixture.rival.clone(), admin.join("rival").unwrap(), &board);
    settled(&board, &items, &["rival"]).await;
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let mut session = newest_session(&server_fixture);
    let arm = |session| server_fixture.server.fault(When::op(op).session(session), strike.fault());
    let mut armed = (!is_of_views).then(|| arm(session));
    // The rival is to learn only by a request, which is a write, that another member waits.
    let lists = When::ops([Op::GetChildren, Op::GetChildren2]).path(&format!("{PATH}/locks/*"));
    let lists = lists.session(session_of(&server_fixture, "rival")).always();
    let unseen = (op == Op::SetData)
        .then(|| server_fixture.server.fault(lists, Fault::Refuse(ErrorCode::Other(-127))));
    let actor = Worker::of(manager.clone(), partition(&manager).join("actor").unwrap(), &board);
    if is_of_views {
        settled(&board, &items, &["actor", "rival"]).await;
        session = newest_session(&server_fixture);
        armed = Some(arm(session));
        server_fixture.server.drop_connections();
    }
    let armed = armed.unwrap();
    if matches!(strike, Strike::Expire) {
        board.suspend();
    }
    let striking = strike.carry_out(&server_fixture, session, &armed);
    let living = async {
        if op == Op::SetData {
            within(&what, armed.hit()).await.unwrap();
        }
        drop(unseen);
        items.push("new".to_owned());
        within(&what, patiently(async || admin.add(&items).await)).await.unwrap();
        let are_settled = |board: &Board| board.owners() == expected(&items, &["actor", "rival"]);
        within(&what, board.until(are_settled)).await.unwrap_or_else(|error| {
            panic!("{error}: {:?}", board.owners());
        });
        server_fixture.server.drop_connections();
        if op == Op::Multi && !is_of_views {
            // The lease of what it holds is confirmed over the new connection.
            within(&what, armed.hit()).await.unwrap();
        }
        // After too long a time, it has dropped its guards but for those on the board.
        let _ = actor.end().await;
        board.drop_guards_of("actor");
        settled(&board, &items, &["rival"]).await;
        rival.leave().await;
        nothing_is_left(&server_fixture).await;
        armed.hits()
    };
    tokio::select! {
        hits = living => hits,
        never = async { striking.await; std::future::pending().await } => never,
    }
}

/// Repeats a call whose connection may be cut.
async fn patiently<T>(call: impl AsyncFn() -> Result<T, Error>) -> T {
    loop {
        match call().await {
            Ok(output) => return output,
            Err(error) => assert!(error.is_transient() || error.outcome_unknown(), "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_member_that_is_dropped_while_a_request_is_in_flight_leaves_no_node() {
    let ops = OF_LOCKS.into_iter().chain([Op::AddWatch, Op::GetChildren2]);
    join_all(ops.flat_map(|op| [(op, false), (op, true)]).map(async |(op, is_lost)| {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (items, board) = (items(4), Arc::new(Board::default()));
        partition(&server_fixture.rival).add(&items).await.unwrap();
        let holder = partition(&server_fixture.rival).join("rival").unwrap();
        let holder = Worker::of(server_fixture.rival.clone(), holder, &board);
        settled(&board, &items, &["rival"]).await;
        let armed = server_fixture.server.fault(When::op(op), Fault::HoldReply);
        let actor = Worker::start(&server_fixture, "actor", &board).await;
        let is_settled = |board: &Board| board.owners() == expected(&items, &["actor", "rival"]);
        tokio::select! {
            biased;
            () = armed.hit() => {}
            () = board.until(is_settled) => {}
        }
        actor.abort().await;
        board.drop_guards_of("actor");
        if is_lost {
            server_fixture.server.drop_connections();
        }
        armed.release();
        settled(&board, &items, &["rival"]).await;
        holder.leave().await;
        nothing_is_left(&server_fixture).await;
    }))
    .await;
}
