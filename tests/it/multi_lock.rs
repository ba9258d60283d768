//! Several locks at once, on a real server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use lockkeeper::{
    ConnectionManager, Error, HoldEvent, Lock, LossReason, MultiLock, Mutex, Owner, Phase, ReentrantMutex,
    RwLock, Semaphore, TxnError,
};
use lockkeeper_tests::{After, Ensemble, Match, Message, OpCode, Proxies, Timing, dropped_after, eventually};

use crate::support::{behind_proxy, children, connect, no_node_is_left, nodes_become};

fn mutex(manager: &ConnectionManager, name: &str) -> Mutex {
    Mutex::new(manager, format!("/multi/{name}").as_str()).unwrap()
}

fn mutexes(manager: &ConnectionManager, names: &[&str]) -> Vec<Mutex> {
    names.iter().map(|name| mutex(manager, name)).collect()
}

fn all_of(locks: &[Mutex]) -> MultiLock {
    locks.iter().fold(MultiLock::builder(), |builder, lock| builder.lock(lock)).build().unwrap()
}

fn all_at_once(locks: &[Mutex]) -> MultiLock {
    locks.iter().fold(MultiLock::builder(), |builder, lock| builder.lock(lock)).atomic().build().unwrap()
}

/// What was asked, the confirmations of the session left out: those are transactions that only check.
fn asked(proxies: &Proxies) -> Vec<OpCode> {
    let log = proxies.log();
    let changes = |parts: &[(OpCode, String)]| parts.iter().any(|(op, _)| *op != OpCode::Check);
    log.requests()
        .filter(|request| request.op != OpCode::Multi || changes(&request.parts))
        .map(|request| request.op)
        .collect()
}

async fn start() -> (Ensemble, ConnectionManager, ConnectionManager) {
    let ensemble = Ensemble::start(1).await.unwrap();
    let one = connect(&ensemble.connect_string()).await;
    let other = connect(&ensemble.connect_string()).await;
    (ensemble, one, other)
}

#[tokio::test]
async fn free_locks_are_taken_by_one_transaction_and_one_read_and_released_by_one() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let all = all_of(&mutexes(&manager, &["a", "b", "c", "d", "e"]));
    // The directories are made by the first one.
    all.acquire().await.unwrap().release().await.unwrap();
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    // The third tells the creation time, which 3.8.0 leaves out of a transaction's answer.
    assert_eq!(asked(&proxies), [OpCode::Multi, OpCode::MultiRead, OpCode::Exists]);
    let log = proxies.log();
    let second = log.requests().find(|request| request.op == OpCode::MultiRead).unwrap();
    assert!(second.in_flight >= 1, "the read waited for the answer to the transaction");
    let tokens: BTreeSet<u64> = guard.fencing_tokens().map(|(_, token)| token.as_u64()).collect();
    assert_eq!(tokens.len(), 1, "one transaction made all nodes");
    assert!(!tokens.contains(&0));
    proxies.clear_log();
    guard.release().await.unwrap();
    assert_eq!(asked(&proxies), [OpCode::Multi]);
}

#[tokio::test]
async fn used_again_and_again_it_asks_for_the_creation_time_before_it_knows_the_name() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let all = all_of(&mutexes(&manager, &["a", "b"]));
    for _ in 0..2 {
        all.acquire().await.unwrap().release().await.unwrap();
    }
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    assert_eq!(asked(&proxies), [OpCode::Multi, OpCode::Exists, OpCode::MultiRead]);
    let log = proxies.log();
    assert!(log.requests().all(|request| request.op == OpCode::Multi || request.in_flight >= 1));
    let earlier = guard.fencing_tokens().map(|(_, token)| token).max().unwrap();
    guard.release().await.unwrap();

    // The number that was expected is another one's: what was asked for was not there.
    let other = connect(&ensemble.connect_string()).await;
    mutex(&other, "a").acquire().await.unwrap().release().await.unwrap();
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    assert_eq!(asked(&proxies), [OpCode::Multi, OpCode::Exists, OpCode::MultiRead, OpCode::Exists]);
    assert!(guard.fencing_tokens().all(|(_, token)| token > earlier));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_try_in_vain_leaves_nothing_behind_and_waits_for_nobody() {
    let (ensemble, one, other) = start().await;
    let (locks, others) = (mutexes(&one, &["a", "b", "c"]), mutexes(&other, &["a", "b", "c"]));
    for held in &others {
        let held = held.acquire().await.unwrap();
        assert!(all_of(&locks).try_acquire().await.unwrap().is_none());
        let name = held.path().split('/').nth(2).unwrap().to_owned();
        for path in ["a", "b", "c"] {
            nodes_become(&ensemble, &format!("/multi/{path}"), usize::from(path == name)).await;
        }
        held.release().await.unwrap();
    }
    let guard = all_of(&locks).try_acquire().await.unwrap().expect("all are free");
    assert!(all_of(&others).try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn members_are_taken_in_the_order_of_their_paths_whatever_order_they_are_named_in() {
    let (ensemble, one, other) = start().await;
    let named = [mutex(&one, "c"), mutex(&one, "a"), mutex(&one, "b")];
    let all = all_of(&named);
    let paths: Vec<String> = all.paths().map(ToString::to_string).collect();
    assert_eq!(paths, ["/multi/a", "/multi/b", "/multi/c"]);
    let held = mutex(&other, "b").acquire().await.unwrap();
    let taking = tokio::spawn(async move { all.acquire().await });
    // It has the first, waits for the second, and has no place at the third.
    nodes_become(&ensemble, "/multi/b", 2).await;
    nodes_become(&ensemble, "/multi/a", 1).await;
    nodes_become(&ensemble, "/multi/c", 0).await;
    held.release().await.unwrap();
    taking.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn no_time_at_all_is_one_try_in_either_way() {
    let (ensemble, one, other) = start().await;
    for atomic in [false, true] {
        let locks = mutexes(&one, &["a", "b"]);
        let all = if atomic { all_at_once(&locks) } else { all_of(&locks) };
        all.acquire_timeout(Duration::ZERO).await.unwrap().release().await.unwrap();
        let held = mutex(&other, "b").acquire().await.unwrap();
        assert!(all.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
        no_node_is_left(&ensemble, "/multi/a").await;
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn each_side_of_a_read_write_lock_tells_of_itself() {
    let (_ensemble, one, _other) = start().await;
    let lock = RwLock::new(&one, "/multi/rw").unwrap();
    let (mut reads, mut writes) = (lock.reader().events(), lock.writer().events());
    let write = lock.write().await.unwrap();
    assert!(lock.writer().is_held() && !lock.reader().is_held());
    let read = write.downgrade().await.unwrap();
    assert!(!lock.writer().is_held() && lock.reader().is_held());
    read.release().await.unwrap();
    for events in [&mut writes, &mut reads] {
        assert!(matches!(events.next().await, Some(HoldEvent::Acquired { .. })));
        assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
    }
}

#[tokio::test]
async fn one_limit_holds_for_all_and_everything_taken_before_is_given_back() {
    let (ensemble, one, other) = start().await;
    let held = mutex(&other, "c").acquire().await.unwrap();
    let all = all_of(&mutexes(&one, &["a", "b", "c", "d"]));
    let error = all.acquire_timeout(Timing::scaled(Duration::from_secs(2))).await.unwrap_err();
    assert_eq!(error.path().as_str(), "/multi/c");
    assert!(matches!(error.cause(), Error::Timeout { phase: Phase::Queued { .. }, .. }), "{error}");
    assert_eq!(error.undo(), []);
    for free in ["a", "b", "d"] {
        no_node_is_left(&ensemble, &format!("/multi/{free}")).await;
    }
    held.release().await.unwrap();
    no_node_is_left(&ensemble, "/multi/c").await;
}

#[tokio::test]
async fn any_mix_is_held_by_one_guard_with_a_token_for_each() {
    let (ensemble, one, other) = start().await;
    let owner = Owner::new("mixed");
    let reentrant = ReentrantMutex::new(&one, "/mix/b").unwrap().for_owner(&owner);
    let prices = RwLock::new(&one, "/mix/c").unwrap();
    let stock = RwLock::new(&one, "/mix/d").unwrap();
    let slots = Semaphore::new(&one, "/mix/e", 4).unwrap();
    let single = Mutex::in_semaphore_layout(&one, "/mix/f").unwrap();
    let mix = |builder: lockkeeper::MultiLockBuilder| {
        builder
            .lock(&slots.permits(2))
            .lock(&prices.reader())
            .lock(&reentrant)
            .lock(&stock.writer())
            .lock(&single)
            .lock(&slots.permits(1))
            .build()
            .unwrap()
    };
    // One mode after the other: the first is gone before the second is built.
    for atomic in [false, true] {
        let all = mix(if atomic { MultiLock::builder().atomic() } else { MultiLock::builder() });
        assert_eq!(all.paths().count(), 5, "permits of one semaphore are added up");
        let guard = all.acquire().await.unwrap();
        assert_eq!(guard.fencing_tokens().count(), 5);
        assert!(guard.fencing_tokens().all(|(_, token)| token.as_u64() > 0));
        assert!(guard.is_valid() && all.is_held());
        assert_eq!(reentrant.hold_count(&owner), 1);
        assert_eq!(slots.available().await.unwrap(), 1);
        let others = RwLock::new(&other, "/mix/c").unwrap();
        others.try_read().await.unwrap().expect("readers share").release().await.unwrap();
        assert!(RwLock::new(&other, "/mix/d").unwrap().try_read().await.unwrap().is_none());
        assert!(Mutex::in_semaphore_layout(&other, "/mix/f").unwrap().try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert!(!all.is_held());
        for path in ["/mix/b", "/mix/c", "/mix/d", "/mix/e/locks", "/mix/e/leases", "/mix/f/leases"] {
            assert_eq!(children(&ensemble, path).await, Vec::<String>::new(), "{path}");
        }
    }
}

#[tokio::test]
async fn the_loss_of_one_member_is_the_loss_of_all_and_nothing_is_committed() {
    let (ensemble, one, _other) = start().await;
    let all = all_of(&mutexes(&one, &["a", "b"]));
    let guard = all.acquire().await.unwrap();
    let mut events = all.events();
    let mut admin = ensemble.raw().await.unwrap();
    let victim = format!("/multi/b/{}", children(&ensemble, "/multi/b").await[0]);
    admin.delete(&victim).await.unwrap();
    let created = guard.txn().create("/done".parse().unwrap(), Vec::new()).commit().await;
    assert!(matches!(created, Err(TxnError::Lost(_))), "{created:?}");
    let lost = guard.lost().await;
    assert_eq!((lost.path.as_str(), lost.reason), (victim.as_str(), LossReason::NodeDeleted));
    assert!(!guard.is_valid());
    assert!(matches!(events.next().await, Some(HoldEvent::Lost(told)) if told == lost));
    // The other member is given back all the same, and the loss is said.
    assert!(guard.release().await.unwrap_err().is_lost());
    no_node_is_left(&ensemble, "/multi/a").await;
}

#[tokio::test]
async fn a_member_deleted_before_the_release_does_not_keep_the_others() {
    let (ensemble, one, _other) = start().await;
    let guard = all_of(&mutexes(&one, &["a", "b", "c"])).acquire().await.unwrap();
    let mut admin = ensemble.raw().await.unwrap();
    admin.delete(&format!("/multi/b/{}", children(&ensemble, "/multi/b").await[0])).await.unwrap();
    let errors = guard.release().await.unwrap_err();
    assert_eq!(errors.errors().len(), 1);
    for path in ["a", "b", "c"] {
        assert_eq!(children(&ensemble, &format!("/multi/{path}")).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn atomic_takers_wait_in_all_lines_at_once() {
    let (ensemble, one, other) = start().await;
    let held = mutex(&other, "b").acquire().await.unwrap();
    let all = all_at_once(&mutexes(&one, &["a", "b", "c"]));
    let taking = tokio::spawn(async move { all.acquire().await });
    for (path, nodes) in [("a", 1), ("b", 2), ("c", 1)] {
        nodes_become(&ensemble, &format!("/multi/{path}"), nodes).await;
    }
    held.release().await.unwrap();
    let guard = taking.await.unwrap().unwrap();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn one_path_cannot_be_taken_both_ways_in_one_process() {
    let (_ensemble, one, other) = start().await;
    let ordered = all_of(&mutexes(&one, &["a", "b"]));
    let mixed = MultiLock::builder().lock(&mutex(&one, "b")).lock(&mutex(&one, "c")).atomic().build();
    assert!(matches!(mixed, Err(Error::Config(_))), "{mixed:?}");
    drop(ordered);
    let _atomic = all_at_once(&mutexes(&one, &["b", "c"]));
    // Members of two managers are of two sessions.
    let two = MultiLock::builder().lock(&mutex(&one, "x")).lock(&mutex(&other, "y")).build();
    assert!(matches!(two, Err(Error::Config(_))), "{two:?}");
}

#[tokio::test]
async fn what_cannot_be_taken_together_is_refused_before_anything_is_sent() {
    let (_ensemble, one, _other) = start().await;
    let (owner, someone) = (Owner::new("one"), Owner::new("other"));
    let reentrant = ReentrantMutex::new(&one, "/multi/a").unwrap();
    let prices = RwLock::new(&one, "/multi/a").unwrap();
    let builders = [
        MultiLock::builder(),
        MultiLock::builder().lock(&reentrant),
        MultiLock::builder().lock(&mutex(&one, "a")).lock(&reentrant.for_owner(&owner)),
        MultiLock::builder().lock(&reentrant.for_owner(&owner)).lock(&reentrant.for_owner(&someone)),
        MultiLock::builder().lock(&mutex(&one, "a")).lock(&prices.reader()),
        MultiLock::builder()
            .lock(&prices.for_owner(&owner).reader())
            .lock(&prices.for_owner(&someone).writer()),
    ];
    for builder in builders {
        let refused = builder.build();
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    let twice = MultiLock::builder()
        .lock(&prices.reader())
        .lock(&prices.writer())
        .lock(&mutex(&one, "b"))
        .lock(&mutex(&one, "b"))
        .build()
        .unwrap();
    assert_eq!(twice.paths().count(), 2);
    twice.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn whoever_holds_a_lock_is_refused_more_unless_nesting_is_allowed() {
    let (_ensemble, one, _other) = start().await;
    let owner = Owner::new("nested");
    let outer = ReentrantMutex::new(&one, "/multi/outer").unwrap().for_owner(&owner);
    let held = outer.acquire_scoped().await.unwrap();
    let locks = mutexes(&one, &["a", "b"]);
    let refused = owner.scope(all_of(&locks).acquire()).await.unwrap_err();
    assert!(matches!(refused.cause(), Error::WouldDeadlock { .. }), "{refused}");
    let nested = MultiLock::builder().lock(&outer).lock(&locks[0]).lock(&locks[1]).allow_nesting().build();
    let guard = nested.unwrap().acquire().await.unwrap();
    assert_eq!(outer.hold_count(&owner), 2);
    guard.release().await.unwrap();
    assert_eq!(outer.hold_count(&owner), 1);
    held.release().await.unwrap();
}

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
            let all = if atomic { all_at_once(&locks) } else { all_of(&locks) };
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
async fn a_lost_answer_to_the_transaction_leaves_all_places_or_none() {
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
        // A confirmation may have come in between, and been cut instead: then it is released and said so.
        assert!(fault.has_triggered() || released.is_ok());
        for path in ["a", "b", "c"] {
            no_node_is_left(&ensemble, &format!("/multi/{path}")).await;
        }
        proxies.disarm_all();
    }
}

#[tokio::test]
async fn a_session_lost_on_the_way_starts_over_in_the_next_one() {
    for atomic in [false, true] {
        let (ensemble, proxies, one) = behind_proxy().await;
        let other = connect(&ensemble.connect_string()).await;
        let held = mutex(&other, "b").acquire().await.unwrap();
        let locks = mutexes(&one, &["a", "b"]);
        let all = if atomic { all_at_once(&locks) } else { all_of(&locks) };
        let taking = tokio::spawn(async move { all.acquire().await });
        nodes_become(&ensemble, "/multi/a", 1).await;
        nodes_become(&ensemble, "/multi/b", 2).await;
        let before = children(&ensemble, "/multi/a").await;
        proxies.expire_session(proxies.sessions().last().unwrap().id).await.unwrap();
        let again = eventually("a place in the next session", Timing::settle(), || async {
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

/// Takers of overlapping sets, named in any order, with takers of single locks among them, and of several by hand where
/// that may be: all are served, and never two at one lock.
async fn overlapping(atomic: bool) {
    let (ensemble, one, other) = start().await;
    let names = ["a", "b", "c", "d"];
    let inside: Arc<Vec<AtomicUsize>> = Arc::new(names.iter().map(|_| AtomicUsize::new(0)).collect());
    let sets = [vec![0, 1], vec![1, 2, 3], vec![3, 0], vec![2], vec![2, 1], vec![3, 2, 1, 0], vec![0]];
    let mut takers = Vec::new();
    for (number, set) in sets.iter().cycle().take(28).enumerate() {
        let manager = if number % 2 == 0 { &one } else { &other };
        let locks: Vec<Mutex> = set.iter().map(|at| mutex(manager, names[*at])).collect();
        let mut ways: Vec<Box<dyn Lock>> = match (set.len(), atomic) {
            (1, _) => vec![Box::new(locks[0].clone())],
            (_, true) => vec![Box::new(all_at_once(&locks))],
            // By hand, one after another: in the order of the paths.
            (_, false) if number % 3 == 0 => {
                locks.into_iter().map(|lock| Box::new(lock) as Box<dyn Lock>).collect()
            }
            (_, false) => vec![Box::new(all_of(&locks))],
        };
        ways.sort_by(|one, other| one.path().cmp(other.path()));
        let (set, inside) = (set.clone(), Arc::clone(&inside));
        takers.push(tokio::spawn(async move {
            for _ in 0..5 {
                let mut guards = Vec::new();
                for way in &ways {
                    guards.push(way.acquire().await.unwrap());
                }
                for at in &set {
                    assert_eq!(inside[*at].fetch_add(1, Ordering::SeqCst), 0, "two at one lock");
                }
                tokio::task::yield_now().await;
                for at in &set {
                    inside[*at].fetch_sub(1, Ordering::SeqCst);
                }
                for guard in guards.into_iter().rev() {
                    guard.release().await.unwrap();
                }
            }
        }));
    }
    for taker in join_all(takers).await {
        taker.unwrap();
    }
    for name in names {
        no_node_is_left(&ensemble, &format!("/multi/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_in_any_order_never_stop_each_other() {
    overlapping(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_at_once_never_stop_each_other() {
    overlapping(true).await;
}

#[tokio::test]
async fn the_nodes_of_several_locks_are_watched_only_while_waiting() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let guard = all_of(&mutexes(&manager, &["a", "b"])).acquire().await.unwrap();
    let watches =
        proxies.log().requests().filter(|r| r.message == Message::Request && r.op == OpCode::GetData).count();
    assert_eq!(watches, 0);
    guard.release().await.unwrap();
}
