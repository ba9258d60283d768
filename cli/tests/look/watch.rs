use lockkeeper::{Mutex, Revoker};

use crate::fixture::Fixture;

/// The interval is so long that only the changes themselves can lead to the lines.
#[tokio::test]
async fn each_change_is_a_line_as_it_happens() {
    for fixture in Fixture::both().await {
        let mutex = Mutex::new(&fixture.manager, "/look/watch/a").unwrap();
        let mut running = fixture.start(&["watch", "/look/watch/a", "--interval", "1h"]);
        let guard = mutex.acquire().await.unwrap();
        let line = running.until("  holds  ").await;
        println!("{line}");
        assert!(line.contains(&format!("token {}", guard.fencing_token().as_u128())), "{line}");
        let mut waiting = mutex.enqueue().await.unwrap();
        println!("{}", running.until("  waits  ").await);
        let holder = mutex.inspect().await.unwrap().holders().next().unwrap().clone();
        Revoker::new(&fixture.manager).ask([&holder]).await.unwrap();
        let line = running.until("is asked to release").await;
        println!("{line}");
        assert!(line.contains("pid="), "the name is that from before: {line}");
        guard.release().await.unwrap();
        let line = running.until("released or lost after").await;
        println!("{line}");
        assert!(line.contains(", held for "), "{line}");
        let second = waiting.wait().await.unwrap();
        running.until("  holds  ").await;
        second.release().await.unwrap();
        running.until("released or lost after").await;
    }
}
