use lockkeeper::{CreateMode, Election, Mutex, RwLock, Semaphore};

use crate::screen::Terminal;
use crate::site::Site;

#[tokio::test]
async fn every_lock_election_and_group_is_in_the_tree() {
    for site in Site::both().await {
        let manager = &site.manager;
        let mutex = Mutex::new(manager, "/look/tree/locks/train-7").unwrap();
        let _held = mutex.acquire().await.unwrap();
        let _waits = mutex.enqueue().await.unwrap();
        let _read = RwLock::new(manager, "/look/tree/locks/stock").unwrap().read().await.unwrap();
        let _lease = Semaphore::new(manager, "/look/tree/pool", 3).unwrap().acquire_many(2).await.unwrap();
        let _leads = Election::new(manager, "/look/tree/leader", "node-1").unwrap().campaign().await.unwrap();
        for member in ["a", "b"] {
            let path = format!("/look/tree/workers/{member}");
            manager.znodes().create(&path, "", CreateMode::Ephemeral).await.unwrap();
        }

        let ended = site.run(&["tree", "/look/tree"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let pid = format!("pid={}", std::process::id());
        let row = |name: &str| {
            let line = ended.output.lines().find(|line| line.contains(&format!("─ {name} ")));
            line.unwrap_or_else(|| panic!("{name} in {}", ended.output)).to_owned()
        };
        for (name, parts) in [
            ("train-7", &["mutex", &pid, "1 waiting"][..]),
            ("stock", &["read/write lock", &pid]),
            ("pool", &["semaphore 2/3", &pid, "and 1 more"]),
            ("leader", &["election", "node-1"]),
            ("workers", &["group", "a, b", "2 members"]),
        ] {
            for part in parts {
                assert!(row(name).contains(part), "{part}: {}", ended.output);
            }
        }
        let terminal = Terminal::start(&site, &["tree", "/look/tree"]);
        terminal.shows(&["/look/tree", "2 members"]).await;
        terminal.picture("tree");
        assert_eq!(terminal.ended().await, 0);
        let json = site.run(&["tree", "/look/tree", "-o", "json"]).await;
        assert_eq!(json.output.lines().count(), 5, "{json:?}");
        let none = site.run(&["tree", "/look/tree/none"]).await;
        none.has(&["/look/tree/none: no contender and no group"]);
    }
}
