//! A node that stands though nobody holds it.

use std::time::Duration;

use lockkeeper::{Hold, Mutex, Revoker};

use super::scene::{Scene, asked, keep};
use crate::limit::within;
use crate::world::LOCK;

/// Less than a linger.
const PROMPTLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_lingering_node_is_taken_again_and_again_without_a_request() {
    let scene = Scene::lingering().await;
    let first = scene.mutex.acquire_owned().await.unwrap();
    let (node, mut token) = (Hold::path(&first).to_owned(), first.fencing_token());
    first.release().await.unwrap();
    scene.is_watched().await;
    let transcript = scene.world.server.transcript();
    for round in 0..100 {
        let guard = match round % 2 {
            0 => scene.mutex.acquire().await.unwrap(),
            _ => scene.mutex.try_acquire().await.unwrap().expect("a node that lingers"),
        };
        assert!(guard.is_valid() && Hold::path(&guard) == node && guard.fencing_token() > token);
        token = guard.fencing_token();
        match round % 3 {
            0 => drop(guard),
            _ => guard.release().await.unwrap(),
        }
    }
    assert_eq!(asked(transcript.passed(), scene.session()), []);
    drop(scene.mutex);
    scene.world.line_becomes(0).await.unwrap();
    let again = Mutex::new(&scene.actor, LOCK).unwrap().acquire_owned().await.unwrap();
    assert!(again.fencing_token() > token);
}

#[tokio::test]
async fn a_first_hold_is_not_looked_after_before_it_is_given_back() {
    let scene = Scene::lingering().await;
    let transcript = scene.world.server.transcript();
    let held = scene.mutex.acquire().await.unwrap();
    scene.world.round_trip_of_rival().await.unwrap();
    scene.let_all_run().await;
    let before = asked(transcript.passed(), scene.session()).len();
    let plain = Mutex::new(&scene.actor, "/locks/plain").unwrap();
    let transcript = scene.world.server.transcript();
    let _ = plain.acquire().await.unwrap();
    let of_plain = asked(transcript.passed(), scene.session()).len();
    assert!(before <= of_plain + 1, "{before} requests");
    drop(held);
}

#[tokio::test]
async fn a_lingering_node_makes_way_when_another_process_comes() {
    let scene = Scene::lingering().await;
    for is_seen_before in [false, true] {
        scene.mutex.acquire().await.unwrap().release().await.unwrap();
        if is_seen_before {
            scene.is_watched().await;
        }
        let theirs = Mutex::new(&scene.world.rival, LOCK).unwrap();
        theirs.acquire_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    }
    scene.world.line_becomes(0).await.unwrap();
}

/// Another object of the same process is another contender.
#[tokio::test]
async fn a_lingering_node_makes_way_when_another_mutex_of_the_process_comes() {
    let scene = Scene::lingering().await;
    scene.mutex.acquire().await.unwrap().release().await.unwrap();
    let other = Mutex::new(&scene.actor, LOCK).unwrap();
    other.acquire_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    scene.mutex.acquire().await.unwrap().release().await.unwrap();
    let mut ticket = scene.mutex.enqueue().await.unwrap();
    let guard = ticket.wait_timeout(PROMPTLY).await.unwrap();
    guard.release().await.unwrap();
    scene.world.line_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_linger_ends_by_itself() {
    let scene = Scene::set(keep().linger(Duration::from_millis(20))).await;
    for _ in 0..3 {
        scene.mutex.acquire().await.unwrap().release().await.unwrap();
        scene.world.line_becomes(0).await.unwrap();
    }
}

#[test]
fn a_linger_ends_with_the_last_clone_of_the_mutex_also_outside_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let scene = runtime.block_on(Scene::lingering());
    let clone = scene.mutex.clone();
    runtime.block_on(async { clone.acquire().await.unwrap().release().await.unwrap() });
    assert_eq!(scene.world.server.inspect(|machine| crate::world::in_line(machine).len()), 1);
    drop(clone);
    drop(scene.mutex);
    runtime.block_on(scene.world.line_becomes(0)).unwrap();
}

#[tokio::test]
async fn a_linger_keeps_no_session_alive() {
    let scene = Scene::lingering().await;
    scene.mutex.acquire().await.unwrap().release().await.unwrap();
    let Scene { world, actor, mutex } = scene;
    drop((actor, mutex));
    let ended = world.server.wait_until(|machine| machine.sessions().len() == 1);
    within("the end of the session", ended).await.unwrap();
}

#[tokio::test]
async fn a_lingering_node_goes_when_somebody_asks_for_it() {
    let scene = Scene::lingering().await;
    scene.mutex.acquire().await.unwrap().release().await.unwrap();
    let theirs = Mutex::new(&scene.world.rival, LOCK).unwrap();
    let inspection = theirs.inspect().await.unwrap();
    let asked = Revoker::new(&scene.world.rival).ask(inspection.contenders()).await.unwrap();
    assert_eq!(asked.len(), 1);
    tokio::time::timeout(PROMPTLY, scene.world.line_becomes(0)).await.unwrap().unwrap();
}
