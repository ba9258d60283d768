//! Acquires of several locks that are dropped, lose an answer or lose their session.

use lockkeeper_tests::{After, Match, OpCode, Timing, dropped_after, eventually};

use super::{all_atomic, all_of, mutex, mutexes, start};
use crate::support::{behind_proxy, children, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn an_acquire_dropped_anywhere_leaves_no_node() {
    let (ensemble, one, other) = start().await;
    for (number, atomic, occupied) in [(0, false, false), (1, false, true), (2, true, false), (3, true, true)]
    {
        for polls in 0.. {
            let name = |last: &str| format!("{number}-{polls}-{last}");
            let locks = mutexes(&one, &[&name("a"), &name("b")]);
            let held = match occupied {
                true => Some(mutex(&other, &name("b")).acquire().await.unwrap()),
                false => None,
            };
            let all = if atomic { all_atomic(&locks) } else { all_of(&locks) };
            let after = dropped_after(polls, all.acquire()).await;
            let is_end = after.is_end();
            assert!(!(occupied && matches!(after, After::Done(_))), "two holders");
            drop(after);
            no_node_is_left(&ensemble, &format!("/multi/{}", name("a"))).await;
            nodes_become(&ensemble, &format!("/multi/{}", name("b")), usize::from(occupied)).await;
            drop(held);
            if is_end {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_lost_answer_to_the_transaction_leaves_all_nodes_or_none() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let all = all_of(&mutexes(&manager, &["a", "b", "c"]));
    all.acquire().await.unwrap().release().await.unwrap();
    for committed in [false, true] {
        let creates = Match::new().op(OpCode::Multi).path_contains("lock-");
        let fault = match committed {
            true => proxies.on(creates).drop_reply_and_cut(),
            false => proxies.on(creates).cut_before_forward(),
        };
        let guard = all.acquire().await.unwrap();
        assert!(fault.has_triggered());
        for path in ["a", "b", "c"] {
            nodes_become(&ensemble, &format!("/multi/{path}"), 1).await;
        }
        let fault = proxies.on(Match::new().op(OpCode::Multi).path_contains("lock-")).drop_reply_and_cut();
        let released = guard.release().await;
        // The fault may have struck a confirmation instead: then the release succeeds.
        assert!(fault.has_triggered() || released.is_ok());
        for path in ["a", "b", "c"] {
            no_node_is_left(&ensemble, &format!("/multi/{path}")).await;
        }
        proxies.disarm_all();
    }
}

#[tokio::test]
async fn an_acquire_whose_session_is_lost_starts_over_in_the_next_one() {
    for atomic in [false, true] {
        let (ensemble, proxies, one) = behind_proxy().await;
        let other = connect(&ensemble.connect_string()).await;
        let held = mutex(&other, "b").acquire().await.unwrap();
        let locks = mutexes(&one, &["a", "b"]);
        let all = if atomic { all_atomic(&locks) } else { all_of(&locks) };
        let taking = tokio::spawn(async move { all.acquire().await });
        nodes_become(&ensemble, "/multi/a", 1).await;
        nodes_become(&ensemble, "/multi/b", 2).await;
        let before = children(&ensemble, "/multi/a").await;
        proxies.expire_session(proxies.sessions().last().unwrap().id).await.unwrap();
        let again = eventually("nodes of the next session", Timing::settle(), || async {
            let now = children(&ensemble, "/multi/a").await;
            (now.len() == 1 && now != before && children(&ensemble, "/multi/b").await.len() == 2)
                .then_some(())
        });
        again.await.unwrap();
        held.release().await.unwrap();
        let guard = taking.await.unwrap().unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}
