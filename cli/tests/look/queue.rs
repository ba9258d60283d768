use std::time::{Duration, SystemTime};

use lockkeeper::{Mutex, WorkQueue};

use crate::fixture::Fixture;

const PATH: &str = "/look/queue/orders";

#[tokio::test]
async fn a_work_queue_is_shown_with_its_takers_and_its_failed_items_go_back() {
    for fixture in Fixture::both().await {
        let queue = WorkQueue::<String>::new(&fixture.manager, PATH).unwrap().with_max_attempts(1).unwrap();
        for order in ["broken", "taken", "free"] {
            queue.put(&order.to_owned()).await.unwrap();
        }
        let far = SystemTime::now() + Duration::from_secs(86_400);
        queue.put_at(&"later".to_owned(), far).await.unwrap();
        assert!(queue.take().await.unwrap().fail("no\u{202e}stock").await.unwrap());
        let _taken = queue.take().await.unwrap();

        let list = fixture.run(&["queue", "list", PATH]).await;
        let pid = format!("pid={}", std::process::id());
        list.has(&[
            "/look/queue/orders: 3 items, 1 failed",
            "attempts 1  taken by host=",
            &pid,
            "attempts 0  free",
            "attempts 0  due 2",
            "no\\u{202e}stock",
        ]);
        assert_eq!(fixture.run(&["inspect", PATH]).await.output, list.output);
        let held = fixture.run(&["inspect", "--exit-code", PATH]).await;
        assert_eq!(held.code, Some(0), "{held:?}");
        let json = fixture.run(&["queue", "list", "-o", "json", PATH]).await;
        json.has(&[
            r#""recipe":"work queue","item_count":3,"failed_count":1"#,
            r#""state":"claimed","attempts":1,"by":"host="#,
            r#""state":"free","attempts":0,"by":null,"since":null,"due":null"#,
            r#""state":"delayed","attempts":0,"by":null,"since":null,"due":"2"#,
        ]);

        let failed = queue.inspect().await.unwrap().failed.remove(0).path;
        let back = fixture.run(&["queue", "requeue", PATH, failed.name()]).await;
        assert_eq!(back.code, Some(0), "{back:?}");
        back.has(&["requeued 100-"]);
        let again = fixture.run(&["queue", "requeue", PATH, failed.name()]).await;
        assert_eq!(again.code, Some(1), "{again:?}");
        again.has(&["there is no such failed item"]);
        let none = fixture.run(&["queue", "requeue", PATH, "--all"]).await;
        none.has(&["no item has failed"]);
        let seen = queue.inspect().await.unwrap();
        assert_eq!((seen.item_count, seen.failed_count), (4, 0));
    }
}

#[tokio::test]
async fn every_item_that_has_failed_goes_back_at_once() {
    let fixture = Fixture::patient().await;
    let queue = WorkQueue::<String>::new(&fixture.manager, PATH).unwrap().with_max_attempts(1).unwrap();
    // More than one look shows.
    const FAILED: usize = 103;
    for number in 0..FAILED {
        queue.put(&number.to_string()).await.unwrap();
        assert!(queue.take().await.unwrap().fail("no stock").await.unwrap());
    }
    fixture.run(&["queue", "list", PATH]).await.has(&["0 items, 103 failed", "and 3 more failed items"]);
    let back = fixture.run(&["queue", "requeue", PATH, "--all"]).await;
    assert_eq!((back.code, back.output.lines().count()), (Some(0), FAILED), "{back:?}");
    fixture.run(&["queue", "list", PATH]).await.has(&["103 items, 0 failed", "and 3 more items"]);
}

#[tokio::test]
async fn a_tree_shows_a_work_queue_and_reads_none_of_its_items() {
    for fixture in Fixture::both().await {
        let queue = WorkQueue::<String>::new(&fixture.manager, "/look/works/orders").unwrap();
        queue.put_all(&["a".to_owned(), "b".to_owned(), "c".to_owned()]).await.unwrap();
        let tree = fixture.run(&["tree", "/look/works", "--nodes", "1"]).await;
        assert_eq!(tree.code, Some(0), "{tree:?}");
        tree.has(&["orders  work queue  3 items"]);
        assert!(!tree.output.contains("PARTIAL") && !tree.output.contains("workers"), "{tree:?}");
        let json = fixture.run(&["tree", "/look/works", "-o", "json"]).await;
        json.has(&[r#""path":"/look/works/orders","recipe":"work queue","item_count":3"#]);
    }
}

/// A directory with such children may belong to others.
#[tokio::test]
async fn locks_below_directories_with_the_names_of_a_queue_are_shown() {
    for fixture in Fixture::both().await {
        let lock = |name: &str| Mutex::new(&fixture.manager, format!("/look/no-queue/{name}")).unwrap();
        let _held = [
            lock("items/100-0000000001/a").acquire().await.unwrap(),
            lock("items/train-7").acquire().await.unwrap(),
            lock("records/a").acquire().await.unwrap(),
        ];
        let tree = fixture.run(&["tree", "/look/no-queue"]).await;
        tree.has(&["train-7", "100-0000000001", "records"]);
        assert!(!tree.output.contains("work queue"), "{tree:?}");
    }
}

#[tokio::test]
async fn a_path_without_a_queue_is_said_and_nothing_is_created() {
    for fixture in Fixture::both().await {
        for arguments in [&["queue", "list", "/look/none"][..], &["queue", "requeue", "/look/none", "--all"]]
        {
            let ended = fixture.run(arguments).await;
            assert_eq!(ended.code, Some(1), "{ended:?}");
            ended.has(&["/look/none: no work queue"]);
        }
        for arguments in [
            &["queue", "requeue", "/look/none"][..],
            &["queue", "requeue", "/look/none", "../a"],
            &["queue", "list", "no-path"],
        ] {
            assert_eq!(fixture.run(arguments).await.code, Some(64), "{arguments:?}");
        }
        assert!(fixture.manager.znodes().exists("/look/none").await.unwrap().is_none());
    }
}
