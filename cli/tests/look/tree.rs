use lockkeeper::znodes::CreateMode;
use lockkeeper::{Election, Mutex, RwLock, Semaphore};

use crate::fixture::Fixture;
use crate::screen::Terminal;

#[tokio::test]
async fn every_lock_election_and_group_is_in_the_tree() {
    for fixture in Fixture::both().await {
        let manager = &fixture.manager;
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

        let ended = fixture.run(&["tree", "/look/tree"]).await;
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
        let terminal = Terminal::start(&fixture, &["tree", "/look/tree"]);
        terminal.shows(&["/look/tree", "2 members"]).await;
        assert_eq!(terminal.ended().await, 0);
        let json = fixture.run(&["tree", "/look/tree", "-o", "json"]).await;
        assert_eq!(json.output.lines().count(), 5, "{json:?}");
        let none = fixture.run(&["tree", "/look/tree/none"]).await;
        none.has(&["/look/tree/none: no contender and no group"]);
    }
}

#[tokio::test]
async fn what_other_programs_keep_at_the_root_hides_no_lock() {
    for fixture in Fixture::both().await {
        let znodes = fixture.manager.znodes();
        let path = "/look-at-root";
        // A contender at the root, where no lock of this library can be.
        let foreign = "/_c_00c9d435-2596-43a6-90c7-196313af6a00-lock-0000000001";
        znodes.create(foreign, "", CreateMode::Ephemeral).await.unwrap();
        let _held = Mutex::new(&fixture.manager, path).unwrap().acquire().await.unwrap();
        let ended = fixture.run(&["tree", "/"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.has(&["look-at-root"]);
        znodes.delete(foreign).await.unwrap();
    }
}

#[tokio::test]
async fn names_that_would_upset_a_terminal_are_escaped() {
    for fixture in Fixture::both().await {
        // The right-to-left override, by which a name can be made to look like another.
        let (lock, member) = ("/look/names/a\u{202e}b", "/look/names/group/c\u{202e}d");
        let _held = Mutex::new(&fixture.manager, lock).unwrap().acquire().await.unwrap();
        fixture.manager.znodes().create(member, "", CreateMode::Ephemeral).await.unwrap();
        let ended = fixture.run(&["tree", "/look/names"]).await;
        ended.has(&["a\\u{202e}b", "c\\u{202e}d"]);
        assert!(!ended.output.contains('\u{202e}'), "{ended:?}");
        let mut terminal = Terminal::start(&fixture, &["top", "/look/names"]);
        let screen = terminal.shows(&["> /look/names/a\\u{202e}b"]).await;
        assert!(!screen.contains('\u{202e}'), "{screen}");
        terminal.press("\r");
        let screen = terminal.shows(&["mutex /look/names/a\\u{202e}b: held by 1"]).await;
        assert!(!screen.contains('\u{202e}'), "{screen}");
        let _other = Mutex::new(&fixture.manager, "/look/names/c").unwrap().acquire().await.unwrap();
        let foreign = "/look/names/c/x\u{202e}y";
        fixture.manager.znodes().create(foreign, "", CreateMode::Ephemeral).await.unwrap();
        let ended = fixture.run(&["inspect", "/look/names/c"]).await;
        ended.has(&["foreign", "x\\u{202e}y"]);
        assert!(!ended.output.contains('\u{202e}'), "{ended:?}");
    }
}

#[tokio::test]
async fn a_tree_is_said_to_be_cut_only_if_it_is() {
    for fixture in Fixture::both().await {
        for name in ["a", "b"] {
            let path = format!("/look/bounds/{name}");
            fixture.manager.znodes().create(&path, "", CreateMode::Ephemeral).await.unwrap();
        }
        let whole = fixture.run(&["tree", "/look/bounds", "--nodes", "2"]).await;
        assert_eq!(whole.messages, "", "{whole:?}");
        assert!(whole.output.contains("a, b") && !whole.output.contains("no group"), "{whole:?}");
        let cut = fixture.run(&["tree", "/look/bounds", "--nodes", "1"]).await;
        cut.has(&["PARTIAL: only 1 nodes were read"]);
        let json = fixture.run(&["tree", "/look/bounds", "--nodes", "1", "-o", "json"]).await;
        assert!(json.messages.contains("PARTIAL: only 1 nodes were read"), "{json:?}");
        // What locks that are free have left is no part of the limit.
        for number in 0..150 {
            let path = format!("/look/bounds/a-{number}");
            fixture.manager.znodes().create(&path, "", CreateMode::Persistent).await.unwrap();
        }
        let whole = fixture.run(&["tree", "/look/bounds", "--nodes", "2"]).await;
        assert!(!whole.output.contains("PARTIAL"), "{whole:?}");
    }
}

/// A reader of the verdict alone must not take it for one about all.
#[tokio::test]
async fn every_verdict_about_a_part_says_so_on_its_line() {
    for fixture in Fixture::both().await {
        let _held = [
            Mutex::new(&fixture.manager, "/look/part/a/lock").unwrap().acquire().await.unwrap(),
            Mutex::new(&fixture.manager, "/look/part/b/lock").unwrap().acquire().await.unwrap(),
        ];
        let whole = fixture.run(&["deadlocks", "/look/part", "--pause", "0"]).await;
        assert_eq!((whole.code, whole.output.contains("PARTIAL")), (Some(0), false), "{whole:?}");
        let cut = ["--nodes", "2"];
        let partial = fixture.run(&[&["deadlocks", "/look/part", "--pause", "0"][..], &cut].concat()).await;
        assert_eq!(partial.code, Some(3), "{partial:?}");
        partial.has(&["no deadlock among them, PARTIAL: only 2 nodes were read"]);
        let page = fixture.run(&[&["doctor", "--root", "/look/part"][..], &cut].concat()).await;
        page.has(&["below /look/part were seen, PARTIAL; only 2 nodes were read"]);
        let terminal = Terminal::start(&fixture, &[&["top", "/look/part"][..], &cut].concat());
        terminal.shows(&["by waiters, PARTIAL: only 2 nodes were read"]).await;

        // A directory that nobody else may read.
        let owner = ["--auth", "shop:secret", "--acl", "creator"];
        let made = fixture.run(&[&owner[..], &["lock", "/look/secret/a", "--", "true"]].concat()).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        let refused = fixture.run(&["deadlocks", "/look/secret", "--pause", "0"]).await;
        assert_eq!(refused.code, Some(3), "{refused:?}");
        refused.has(&["no deadlock among them, PARTIAL: /look/secret", "may not be read"]);
        let tree = fixture.run(&["tree", "/look/secret"]).await;
        tree.has(&["no contender and no group was seen, PARTIAL: /look/secret", "may not be read"]);
    }
}

#[tokio::test]
async fn a_chroot_that_does_not_exist_is_an_error_of_every_look_and_a_warning_of_a_lock() {
    for fixture in Fixture::both().await {
        let servers = format!("{}/look-chroot", fixture.servers);
        let missing = "the chroot /look-chroot does not exist";
        for look in [
            &["inspect", "/a"][..],
            &["tree", "/"],
            &["watch", "/a"],
            &["deadlocks", "/"],
            &["revoke", "/a"],
            &["release", "/a", "--force", "--yes"],
            &["doctor"],
        ] {
            let ended = fixture.run(&[&["--connect", &servers][..], look].concat()).await;
            assert_eq!(ended.code, Some(64), "{ended:?}");
            assert!(ended.messages.contains(missing), "{ended:?}");
        }
        let lock = ["--connect", &servers, "lock", "/a", "--", "true"];
        let first = fixture.run(&lock).await;
        assert_eq!(first.code, Some(0), "{first:?}");
        assert!(first.messages.contains(missing), "{first:?}");
        let second = fixture.run(&lock).await;
        assert_eq!((second.code, second.messages.as_str()), (Some(0), ""), "{second:?}");
        let tree = fixture.run(&["--connect", &servers, "tree", "/"]).await;
        assert_eq!(tree.code, Some(0), "{tree:?}");
        fixture.manager.znodes().delete("/look-chroot/a").await.unwrap();
        fixture.manager.znodes().delete("/look-chroot").await.unwrap();
    }
}
