//! A node that our process hands off, and Java in the same queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockkeeper::config::HandOffPolicy;
use lockkeeper::{FencingToken, Mutex};
use parking_lot::Mutex as Shared;

use super::fixture::{Failure, InteropFixture, Outcome};

/// The number of grants of each language.
const VISITS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hand_offs_and_idle_nodes_do_not_starve_java() -> Outcome {
    let Some(fixture) = InteropFixture::at("/interop/keeping").await? else {
        return Ok(());
    };
    let keep = HandOffPolicy::default().max_handoffs(5).idle_time(Duration::from_millis(200));
    let mutex = fixture.mutex().with_handoff(keep)?;
    let (is_over, is_inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let tokens = Arc::new(Shared::new(Vec::new()));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let ours = (mutex.clone(), Arc::clone(&is_over), Arc::clone(&is_inside), Arc::clone(&tokens));
            tokio::spawn(async move { visit_until(ours).await })
        })
        .collect();
    let java = fixture.java.thread("visitor");
    for _ in 0..VISITS {
        let grant = java.acquire(&fixture.path).await?;
        assert!(!is_inside.swap(true, Ordering::SeqCst), "two holders at once");
        let newest = tokens.lock().last().map(|token: &FencingToken| token.as_u64());
        assert!(newest.is_none_or(|newest| newest < grant.czxid), "an old node was granted again");
        assert!(is_inside.swap(false, Ordering::SeqCst), "two holders at once");
        java.release(&fixture.path).await?;
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    let tokens = tokens.lock().clone();
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "the fencing tokens do not grow");
    assert!(tokens.iter().any(|token| token.handover() > 0), "no hand-off happened");
    // The idle node is deleted when its time ends.
    fixture.queue_of(0).await?;
    Ok(())
}

type Ours = (Mutex, Arc<AtomicBool>, Arc<AtomicBool>, Arc<Shared<Vec<FencingToken>>>);

async fn visit_until((mutex, is_over, is_inside, tokens): Ours) -> Result<(), Failure> {
    while !is_over.load(Ordering::Relaxed) {
        let guard = mutex.acquire().await?;
        assert!(!is_inside.swap(true, Ordering::SeqCst), "two holders at once");
        tokens.lock().push(guard.fencing_token());
        tokio::task::yield_now().await;
        assert!(is_inside.swap(false, Ordering::SeqCst), "two holders at once");
        guard.release().await?;
    }
    Ok(())
}
