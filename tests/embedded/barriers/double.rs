//! A barrier that members enter together and leave together.

use std::time::Duration;

use lockkeeper::znodes::CreateMode;
use lockkeeper::{DoubleBarrier, Error};

use super::{BARRIER, client, is_open, member, members, members_become};
use crate::limit::{gives_up, within};
use crate::server_fixture::{SESSION, ServerFixture, builder};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_enter_together_and_leave_together_round_after_round() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let managers =
        [client(&server_fixture).await, client(&server_fixture).await, server_fixture.rival.clone()];
    let (entered, mut entries) = tokio::sync::mpsc::unbounded_channel();
    let tasks: Vec<_> = managers
        .iter()
        .enumerate()
        .map(|(at, manager)| {
            let (barrier, entered) = (member(manager, 3, &format!("m{at}")), entered.clone());
            tokio::spawn(async move {
                for round in 0..4 {
                    let inside = barrier.enter().await?;
                    assert!(inside.is_valid());
                    entered.send(round).unwrap();
                    inside.leave().await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    for task in tasks {
        within("the rounds", task).await.unwrap().unwrap().unwrap();
    }
    let rounds: Vec<i32> = std::iter::from_fn(|| entries.try_recv().ok()).collect();
    assert_eq!(rounds, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], "no round begins within another");
    assert!(server_fixture.server.inspect(members).is_empty() && !server_fixture.server.inspect(is_open));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_enters_before_enough_members_are_there_and_an_inspection_names_the_missing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (a, b) = (member(&manager, 3, "a"), member(&server_fixture.rival, 3, "b"));
    let entering = [a.clone(), b].map(|barrier| tokio::spawn(async move { barrier.enter().await }));
    members_become(&server_fixture, 2).await;
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.missing(&["a", "b", "c"]), seen.missing_count()), (vec!["c"], 1), "{seen}");
    assert_eq!((seen.inside().count(), seen.waiting().count()), (0, 2));
    assert!(entering.iter().all(|task| !task.is_finished()));
    let d = member(&manager, 3, "d");
    // The third member: a try is enough.
    let third = within("an answer", d.enter_timeout(Duration::ZERO)).await.unwrap().unwrap();
    let mut inside = vec![third];
    for task in entering {
        inside.push(within("the others", task).await.unwrap().unwrap().unwrap());
    }
    assert_eq!(a.inspect().await.unwrap().inside().count(), 3);
    let late = member(&manager, 3, "e").enter_timeout(Duration::ZERO).await.unwrap_err();
    assert!(late.is_timeout(), "the round has begun without it: {late}");
    let left = inside.into_iter().map(|inside| tokio::spawn(async move { inside.leave().await }));
    for task in left.collect::<Vec<_>>() {
        within("all leave", task).await.unwrap().unwrap().unwrap();
    }
    members_become(&server_fixture, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_node_lets_nobody_in_and_does_not_keep_the_next_round_out() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let stale = format!("{BARRIER}/ready");
    server_fixture.rival.znodes().create(stale.as_str(), "", CreateMode::Persistent).await.unwrap();
    let alone = async |timeout| member(&manager, 2, "a").enter_timeout(timeout).await.unwrap_err();
    let alone = gives_up("1 more", alone).await;
    assert!(alone.is_timeout(), "{alone}");
    members_become(&server_fixture, 0).await;
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let both = async { tokio::try_join!(a.enter(), b.enter()) };
    let (a, b) = within("both", both).await.unwrap().unwrap();
    within("both leave", async { tokio::try_join!(a.leave(), b.leave()) }).await.unwrap().unwrap();
    assert!(!server_fixture.server.inspect(is_open));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_waits_until_the_others_have_left() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    let early = tokio::spawn(in_a.leave_timeout(Duration::from_secs(2)));
    members_become(&server_fixture, 1).await;
    assert!(within("an answer", early).await.unwrap().unwrap().unwrap_err().is_timeout());
    // A member of the next round waits, and is not waited for.
    let next = tokio::spawn(async move { a.enter().await });
    members_become(&server_fixture, 2).await;
    within("the last one leaves", in_b.leave()).await.unwrap().unwrap();
    let again = within("the next round", b.enter()).await.unwrap().unwrap();
    let next = within("the next round", next).await.unwrap().unwrap().unwrap();
    within("both leave", async { tokio::try_join!(again.leave(), next.leave()) }).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_member_leaves_no_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let entering = tokio::spawn({
        let a = a.clone();
        async move { a.enter().await }
    });
    members_become(&server_fixture, 1).await;
    entering.abort();
    members_become(&server_fixture, 0).await;
    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    drop(in_a);
    within("the other one leaves", in_b.leave()).await.unwrap().unwrap();
    members_become(&server_fixture, 0).await;
}

#[tokio::test]
async fn a_double_barrier_of_no_members_or_at_the_root_is_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let barrier = |path: &str, count| DoubleBarrier::new(&server_fixture.rival, path, count);
    for (path, count, advice) in [(BARRIER, 0, "one or more"), ("/", 2, "below the root")] {
        let error = barrier(path, count).unwrap_err();
        assert!(matches!(error, Error::Config(_)) && error.to_string().contains(advice), "{error}");
    }
}

#[tokio::test]
async fn a_try_waits_for_answers_and_for_no_other_member() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // Longer than the test waits.
    let manager = builder(&server_fixture.server.connect_string()).operation_timeout(SESSION * 1_000);
    let manager = manager.session_timeout(SESSION * 20).connect().await.unwrap();
    let alone = member(&manager, 2, "a");
    let error = within("an answer", alone.enter_timeout(Duration::ZERO)).await.unwrap().unwrap_err();
    assert!(error.is_timeout() && error.to_string().contains("1 more"), "{error}");
    members_become(&server_fixture, 0).await;
}

#[tokio::test]
async fn an_inspection_tells_the_members_inside_from_those_that_wait() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let both = within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    let late = member(&manager, 2, "late");
    let waiting = tokio::spawn(async move { late.enter().await });
    members_become(&server_fixture, 3).await;
    let seen = a.inspect().await.unwrap();
    let counts = (seen.inside().count(), seen.waiting().count(), seen.unowned().len());
    assert_eq!(counts, (2, 1, 0), "{seen}");
    assert_eq!(seen.waiting().collect::<Vec<_>>(), ["late"]);
    assert_eq!(seen.members().iter().filter(|member| seen.is_inside(member)).count(), 2);
    let text = seen.to_string();
    let role = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {}", words[2], words[0])
    };
    let mut roles: Vec<String> = text.lines().skip(1).map(role).collect();
    roles.sort_unstable();
    assert_eq!(roles, ["a inside", "b inside", "late waits"], "{text}");
    waiting.abort();
    drop(both);
}
