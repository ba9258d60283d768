use lockkeeper::Mutex;
use lockkeeper::znodes::CreateMode;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_node_is_printed_as_it_is_and_its_children_one_a_line() {
    for fixture in Fixture::both().await {
        let znodes = fixture.manager.znodes();
        znodes.create("/look/node", b"two\nlines", CreateMode::Persistent).await.unwrap();
        for child in ["b", "a\u{202e}c"] {
            znodes.create(format!("/look/node/{child}"), "", CreateMode::Ephemeral).await.unwrap();
        }
        let data = fixture.run(&["get", "/look/node"]).await;
        assert_eq!((data.code, data.output.as_str()), (Some(0), "two\nlines"), "{data:?}");
        let stat = fixture.run(&["get", "/look/node", "--stat"]).await;
        stat.has(&["version   0", "owner     none", "bytes     9", "children  2"]);
        let names = fixture.run(&["ls", "/look/node"]).await;
        assert_eq!((names.code, names.output.as_str()), (Some(0), "a\\u{202e}c\nb\n"), "{names:?}");
        let waiting = format!("pid={} ", std::process::id());
        let mutex = Mutex::new(&fixture.manager, "/look/node/a-lock").unwrap();
        let mutex = mutex.with_node_data(format!("host=a {waiting}ticket 7"));
        let held = mutex.acquire().await.unwrap();
        let long = fixture.run(&["ls", "-l", "/look/node/a-lock"]).await;
        let session = mutex.inspect().await.unwrap().holders().next().unwrap().session();
        let owner = format!("  {session:#x}  host=a {waiting}ticket 7");
        long.has(&[held.path().rsplit('/').next().unwrap(), &owner]);
        held.release().await.unwrap();
        for command in ["get", "ls"] {
            let none = fixture.run(&[command, "/look/none"]).await;
            assert_eq!((none.code, none.output.as_str()), (Some(1), ""), "{none:?}");
        }
    }
}

#[tokio::test]
async fn a_wait_ends_when_nobody_holds_the_lock() {
    for fixture in Fixture::both().await {
        let mutex = Mutex::new(&fixture.manager, "/look/wait").unwrap();
        let held = mutex.acquire().await.unwrap();
        let late = fixture.run(&["wait", "/look/wait", "--timeout", "0.2"]).await;
        assert_eq!(late.code, Some(75), "{late:?}");
        let holder = "/look/wait is still held: host=";
        assert!(late.messages.contains(holder) && late.messages.contains("holds  [0x"), "{late:?}");
        let mut waiting = Box::pin(fixture.run(&["wait", "/look/wait"]));
        assert!(futures::poll!(&mut waiting).is_pending());
        held.release().await.unwrap();
        assert_eq!(waiting.await.code, Some(0));
        assert_eq!(fixture.run(&["wait", "/look/never-held"]).await.code, Some(0));
        // The limit is one for the connect as well.
        let cut_off = ["--connect", "127.0.0.1:1", "wait", "/look/wait", "--timeout", "0.2"];
        let cut_off = fixture.run(&cut_off).await;
        assert_eq!(cut_off.code, Some(69), "{cut_off:?}");
    }
}
