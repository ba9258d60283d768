use lockkeeper::{LossReason, Mutex};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::Fixture;
use crate::screen::Terminal;

/// Waits until one path is shown above the other: a look may see a part of a picture.
async fn ordered(terminal: &Terminal, first: &str, second: &str) {
    let look = async || {
        let screen = terminal.contents();
        let row = |path: &str| screen.lines().position(|line| line.contains(path));
        (row(first)? < row(second)?).then_some(())
    };
    eventually(format!("{first} above {second}"), Timing::event(), look).await.unwrap();
}

#[tokio::test]
async fn the_screen_shows_the_locks_sorts_them_and_takes_one_away() {
    for fixture in Fixture::both().await {
        let crowded = Mutex::new(&fixture.manager, "/look/top/crowded").unwrap();
        let quiet = Mutex::new(&fixture.manager, "/look/top/a-quiet").unwrap();
        let guard = crowded.acquire().await.unwrap();
        let _waiting = (crowded.enqueue().await.unwrap(), crowded.enqueue().await.unwrap());
        let quiet_guard = quiet.acquire().await.unwrap();

        let mut terminal = Terminal::start(&fixture, &["top", "/look/top", "--interval", "100ms"]);
        let pid = format!("pid={}", std::process::id());
        let screen = terminal
            .shows(&["lockkeeper top /look/top: 2 locks, 2 waiting, by waiters", "> /look/top/crowded", &pid])
            .await;
        println!("{screen}");
        terminal.picture("top");
        ordered(&terminal, "/look/top/crowded", "/look/top/a-quiet").await;
        terminal.press("p");
        terminal.shows(&["by path"]).await;
        ordered(&terminal, "/look/top/a-quiet", "/look/top/crowded").await;

        // The holder of the crowded lock is the older one.
        terminal.press("a");
        terminal.shows(&["by age", "AGE*", "> /look/top/"]).await;
        // Of equal rates the first path is the first one; the rate counts each contender that comes and goes.
        terminal.press("r");
        terminal.shows(&["by rate", "NEW/S*", "0.0"]).await;
        let busy = Mutex::new(&fixture.client().await, "/look/top/crowded").unwrap();
        let busy = tokio::spawn(async move {
            loop {
                drop(busy.enqueue().await.unwrap());
            }
        });
        ordered(&terminal, "/look/top/crowded", "/look/top/a-quiet").await;
        busy.abort();

        // The table of the selected lock, and back.
        terminal.press("w");
        terminal.shows(&["by waiters", "> /look/top/"]).await;
        terminal.press("kkk\r");
        terminal.shows(&["mutex /look/top/crowded: held by 1, 2 waiting", "waits"]).await;
        terminal.press("\u{1b}");
        terminal.shows(&["> /look/top/crowded"]).await;

        terminal.press("v");
        terminal.shows(&["asked to release: 1 nodes"]).await;
        guard.revoke_requested().await.unwrap();
        terminal.press("x");
        terminal.shows(&["take the lock away?", "two holders", "y to continue"]).await;
        terminal.press("n");
        terminal.shows(&["nothing was done", "> /look/top/crowded"]).await;
        assert!(guard.is_valid());
        terminal.press("x");
        terminal.shows(&["take the lock away?"]).await;
        terminal.press("y");
        terminal.shows(&["taken away: 1 nodes"]).await;
        assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
        assert!(quiet_guard.is_valid());
        terminal.press("q");
        assert_eq!(terminal.ended().await, 0);
    }
}

#[tokio::test]
async fn without_a_terminal_top_says_what_to_use() {
    let fixture = Fixture::both().await.remove(0);
    let ended = fixture.run(&["top", "/"]).await;
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.messages.contains("use tree"), "{ended:?}");
}
