//! Java Curator's own `InterProcessMultiLock`, given its paths in order, and our multi-lock use the same
//! queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::try_join_all;
use lockkeeper::{MultiLock, Mutex};

use super::fixture::{Failure, InteropFixture, Outcome, SHORTLY};

fn paths(fixture: &InteropFixture) -> Vec<String> {
    ["a", "b", "c"].iter().map(|name| format!("{}/{name}", fixture.path)).collect()
}

fn ours(fixture: &InteropFixture, paths: &[&str]) -> MultiLock {
    let locks: Vec<Mutex> = paths.iter().map(|path| Mutex::new(&fixture.manager, *path).unwrap()).collect();
    locks.iter().fold(MultiLock::builder(), |builder, lock| builder.lock(lock)).build().unwrap()
}

#[tokio::test]
async fn each_excludes_the_other_and_a_failed_try_leaves_no_node() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/multi-each").await? else {
        return Ok(());
    };
    let paths = paths(&fixture);
    let [a, b, c] = [0, 1, 2].map(|at| paths[at].as_str());
    let thread = fixture.java.thread("several");
    assert!(thread.together(&[a, b], None).await?);
    assert!(ours(&fixture, &[c, b]).try_acquire().await?.is_none());
    assert!(ours(&fixture, &[b, c]).acquire_timeout(SHORTLY).await.unwrap_err().is_timeout());
    ours(&fixture, &[c]).try_acquire().await?.expect("free").release().await?;
    thread.apart(&[a, b]).await?;
    let guard = ours(&fixture, &[c, b]).try_acquire().await?.expect("free");
    assert!(!thread.together(&[a, b], Some(SHORTLY)).await?);
    guard.release().await?;
    assert!(thread.together(&[a, b], None).await?);
    thread.apart(&[a, b]).await?;
    Ok(())
}

/// The number of contenders of each language, and of the acquires of each.
const TAKERS: usize = 3;
const VISITS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_of_both_languages_never_deadlock() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/multi-overlap").await? else {
        return Ok(());
    };
    let fixture = Arc::new(fixture);
    let inside: Arc<Vec<AtomicBool>> = Arc::new((0..3).map(|_| AtomicBool::new(false)).collect());
    let takers = (0..TAKERS * 2).map(|number| {
        let (fixture, inside) = (Arc::clone(&fixture), Arc::clone(&inside));
        tokio::spawn(async move {
            let paths = paths(&fixture);
            // Curator acquires them in the given order: the order of the paths.
            let sets: [&[usize]; 4] = [&[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]];
            let thread = fixture.java.thread(&format!("taker-{number}"));
            for visit in 0..VISITS {
                let set = sets[(number + visit) % sets.len()];
                let named: Vec<&str> = set.iter().map(|at| paths[*at].as_str()).collect();
                let guard = match number % 2 {
                    0 => {
                        assert!(thread.together(&named, None).await?);
                        None
                    }
                    _ => Some(ours(&fixture, &named).acquire().await?),
                };
                for at in set {
                    assert!(!inside[*at].swap(true, Ordering::SeqCst), "two holders at once");
                }
                tokio::task::yield_now().await;
                for at in set {
                    inside[*at].store(false, Ordering::SeqCst);
                }
                match guard {
                    None => thread.apart(&named).await?,
                    Some(guard) => guard.release().await?,
                }
            }
            Ok::<(), Failure>(())
        })
    });
    for ended in try_join_all(takers).await? {
        ended?;
    }
    Ok(())
}
