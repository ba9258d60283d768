//! From one task to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::{Error, Hold, HoldEvent, Keep, Lock, Mutex, Owner, Phase, State};
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{Fault, Op, When};

use super::scene::{AT_MOST, Scene, Waiter, asked, keep, nodes_of};
use crate::limit::within;
use crate::world::LOCK;

#[tokio::test]
async fn tasks_of_a_process_are_served_in_the_order_in_which_they_came_on_one_node() {
    let scene = Scene::set(Keep::default()).await;
    let held = scene.mutex.acquire_owned().await.unwrap();
    let node = Hold::path(&held).to_owned();
    let transcript = scene.world.server.transcript();
    let (order, mut served) = (parking_lot::Mutex::new(Vec::new()), Vec::new());
    for (number, waiter) in scene.waiters(5).into_iter().enumerate() {
        let order = &order;
        served.push(async move {
            let guard = waiter.guard().await;
            order.lock().push((number, guard.fencing_token(), Hold::path(&guard).to_owned()));
            guard.release().await.unwrap();
        });
    }
    let first = held.fencing_token();
    held.release().await.unwrap();
    // The last to be polled first.
    served.reverse();
    futures::future::join_all(served).await;
    let order = order.into_inner();
    assert_eq!(order.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(order.iter().all(|(_, token, path)| *token > first && *path == node));
    assert!(order.is_sorted_by(|one, next| one.1 < next.1 && one.1.as_u64() == next.1.as_u64()));
    scene.world.line_becomes(0).await.unwrap();
    let ops: Vec<_> =
        asked(transcript.passed(), scene.session()).into_iter().map(|passed| passed.subject).collect();
    // One look at who else is there, and the end of the node.
    assert_eq!(ops, [Op::GetChildren2, Op::GetData, Op::Delete].map(Subject::Request));
}

#[tokio::test]
async fn while_another_process_waits_a_node_is_passed_on_so_many_times_and_no_more() {
    let scene = Scene::set(keep()).await;
    let held = scene.mutex.acquire_owned().await.unwrap();
    let (node, token) = (Hold::path(&held).to_owned(), held.fencing_token());
    let rival = scene.rival_waits().await;
    let waiters = scene.waiters(8);
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    let theirs = within("a turn of the other process", rival).await.unwrap().unwrap();
    assert!(theirs.fencing_token() > token);
    theirs.release().await.unwrap();
    let nodes = within("all of ours", serving).await.unwrap().unwrap();
    let on_the_first = nodes.iter().filter(|other| **other == node).count();
    assert_eq!(on_the_first, AT_MOST as usize);
    assert!(nodes[AT_MOST as usize..].iter().all(|other| *other != node), "{nodes:?}");
}

#[tokio::test]
async fn while_another_process_waits_a_node_is_passed_on_for_so_long_and_no_longer() {
    let brief = Duration::from_millis(1);
    let scene = Scene::set(Keep::default().at_most(u32::MAX).for_at_most(brief)).await;
    is_not_starved(&scene, brief * 2).await;
}

/// Who comes when the process has been alone for a while: the watch tells.
#[tokio::test]
async fn who_comes_while_a_node_is_passed_on_again_and_again_is_not_starved() {
    is_not_starved(&Scene::set(keep()).await, Duration::ZERO).await;
}

async fn is_not_starved(scene: &Scene, hold: Duration) {
    let is_over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (mutex, is_over) = (scene.mutex.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let guard = mutex.acquire().await.unwrap();
                    tokio::time::sleep(hold).await;
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    scene.is_watched().await;
    for _ in 0..3 {
        let theirs = Mutex::new(&scene.world.rival, LOCK).unwrap();
        let guard = within("a turn of the other process", theirs.acquire()).await.unwrap().unwrap();
        guard.release().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    scene.world.line_becomes(0).await.unwrap();
}

/// Somebody may come meanwhile and is not seen.
#[tokio::test]
async fn without_a_connection_others_are_taken_to_wait() {
    let scene = Scene::set(keep()).await;
    let held = scene.mutex.acquire_owned().await.unwrap();
    let node = Hold::path(&held).to_owned();
    let one = Waiter::of(&scene.mutex);
    held.release().await.unwrap();
    let held = one.guard().await;
    scene.is_watched().await;
    let waiters = scene.waiters(8);
    let mut transitions = scene.actor.transitions();
    scene.world.server.refuse_connections();
    scene.world.server.drop_connections();
    let suspended =
        async { while !matches!(transitions.next().await.unwrap().state, State::Suspended(_)) {} };
    within("the loss of the link", suspended).await.unwrap();
    scene.let_all_run().await;
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    scene.let_all_run().await;
    scene.world.server.accept_connections();
    let nodes = within("all of ours", serving).await.unwrap().unwrap();
    // What was passed on before the first answer may have been counted, too.
    assert!(nodes.iter().filter(|other| **other == node).count() <= AT_MOST as usize);
}

#[tokio::test]
async fn a_waiter_that_gives_up_is_passed_over_and_a_turn_on_its_way_to_it_is_the_next_ones() {
    let scene = Scene::set(Keep::default()).await;
    let held = scene.mutex.acquire_owned().await.unwrap();
    let node = Hold::path(&held).to_owned();
    let mut waiters = scene.waiters(4);
    drop(waiters.remove(1));
    held.release().await.unwrap();
    // It has been told, and does not know it yet.
    drop(waiters.remove(0));
    let nodes = nodes_of(waiters).await;
    assert_eq!(nodes, [node.clone(), node]);
    scene.world.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn who_stands_in_line_for_all_and_gives_up_is_followed_by_the_next() {
    let scene = Scene::set(Keep::default()).await;
    let theirs = Mutex::new(&scene.world.rival, LOCK).unwrap().acquire_owned().await.unwrap();
    let mutex = scene.mutex.clone();
    let in_line = tokio::spawn(async move { mutex.acquire_owned().await });
    scene.world.line_becomes(2).await.unwrap();
    let waiters = scene.waiters(2);
    in_line.abort();
    theirs.release().await.unwrap();
    assert_eq!(nodes_of(waiters).await.len(), 2);
    scene.world.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn who_gives_up_waiting_says_that_it_waited_for_its_own_process() {
    let scene = Scene::set(Keep::default()).await;
    let held = scene.mutex.acquire_owned().await.unwrap();
    let waiter = Waiter::of(&scene.mutex);
    // The first of them is gone when the second comes.
    for _ in 0..2 {
        let refused = scene.mutex.acquire_timeout(Duration::from_millis(10)).await.unwrap_err();
        let Error::Timeout { phase: Phase::InProcess { ahead: 2 }, .. } = refused else {
            panic!("{refused}");
        };
    }
    assert!(scene.mutex.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert!(scene.mutex.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    waiter.guard().await.release().await.unwrap();
    let _ = scene.mutex.try_acquire().await.unwrap().expect("a free lock");
}

#[tokio::test]
async fn an_owner_that_holds_it_does_not_wait_for_itself() {
    let scene = Scene::set(keep()).await;
    let owner = Owner::new("one");
    let work = async {
        let held = scene.mutex.acquire_owned().await.unwrap();
        let refused = scene.mutex.acquire().await.unwrap_err();
        assert!(matches!(refused, Error::WouldDeadlock { .. }), "{refused}");
        held.release().await.unwrap();
        scene.mutex.acquire().await.unwrap().release().await.unwrap();
    };
    owner.scope(work).await;
}

#[tokio::test]
async fn each_guard_is_told_of_and_none_before_the_one_before_it_ended() {
    let scene = Scene::set(Keep::default()).await;
    let mut events = Lock::events(&scene.mutex);
    let held = scene.mutex.acquire_owned().await.unwrap();
    let waiter = Waiter::of(&scene.mutex);
    held.release().await.unwrap();
    waiter.guard().await.release().await.unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let Some(HoldEvent::Acquired { token, .. }) = events.next().await else { panic!("no grant") };
        tokens.push(token);
        assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
    }
    assert!(tokens[0] < tokens[1] && events.next().now_or_never().is_none());
    assert!(!Lock::is_held(&scene.mutex) && scene.actor.health().held == 0);
}

#[test]
fn a_guard_that_is_dropped_outside_a_runtime_is_passed_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (scene, held, waiter) = runtime.block_on(async {
        let scene = Scene::set(Keep::default()).await;
        let held = scene.mutex.acquire_owned().await.unwrap();
        let waiter = Waiter::of(&scene.mutex);
        (scene, held, waiter)
    });
    let node = Hold::path(&held).to_owned();
    drop(held);
    let guard = runtime.block_on(waiter.guard());
    assert_eq!(Hold::path(&guard), node);
    drop(guard);
    runtime.block_on(scene.world.line_becomes(0)).unwrap();
}

/// Nobody would see who else comes.
#[test]
fn a_node_whose_runtime_is_gone_is_not_passed_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let scene = runtime.block_on(Scene::lingering());
    let brief = tokio::runtime::Runtime::new().unwrap();
    let held = brief.block_on(scene.mutex.acquire_owned()).unwrap();
    let node = Hold::path(&held).to_owned();
    drop(brief);
    runtime.block_on(async {
        let waiter = Waiter::of(&scene.mutex);
        held.release().await.unwrap();
        let guard = waiter.guard().await;
        assert!(Hold::path(&guard) != node);
        guard.release().await.unwrap();
    });
}

#[tokio::test]
async fn until_it_is_known_who_else_is_there_others_are_taken_to_wait() {
    let scene = Scene::set(keep()).await;
    let list = When::op(Op::GetChildren2).path(LOCK).session(scene.session());
    let list = scene.world.server.fault(list, Fault::HoldReply);
    let held = scene.mutex.acquire_owned().await.unwrap();
    let node = Hold::path(&held).to_owned();
    let waiters = scene.waiters(8);
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    within("the list", list.hit()).await.unwrap();
    scene.let_all_run().await;
    list.release();
    let nodes = within("all of ours", serving).await.unwrap().unwrap();
    assert_eq!(nodes.iter().filter(|other| **other == node).count(), AT_MOST as usize);
}
