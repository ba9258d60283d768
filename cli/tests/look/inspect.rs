use lockkeeper::Mutex;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_table_shows_who_holds_and_who_waits_and_the_code_whether_it_is_held() {
    for fixture in Fixture::both().await {
        let path = "/look/inspect/a";
        let free = fixture.run(&["inspect", path, "--exit-code"]).await;
        assert_eq!(free.code, Some(1), "{free:?}");
        free.has(&["/look/inspect/a: free, 0 waiting"]);

        let mutex = Mutex::new(&fixture.manager, path).unwrap();
        let guard = mutex.acquire().await.unwrap();
        let _waiting = mutex.enqueue().await.unwrap();
        let held = fixture.run(&["inspect", path, "--exit-code"]).await;
        assert_eq!(held.code, Some(0), "{held:?}");
        let pid = format!("pid={}", std::process::id());
        held.has(&["mutex /look/inspect/a: held by 1, 1 waiting", "holds", "waits", &pid]);
        let both = fixture.run(&["inspect", path, "/look/inspect/none", "--exit-code"]).await;
        assert_eq!(both.code, Some(1), "one of them is free: {both:?}");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn json_has_one_line_for_each_path_with_the_stated_fields() {
    for fixture in Fixture::both().await {
        let mutex = Mutex::new(&fixture.manager, "/look/json/a").unwrap();
        let guard = mutex.acquire().await.unwrap();
        let ended = fixture.run(&["inspect", "-o", "json", "/look/json/a", "/look/json/none"]).await;
        let lines: Vec<serde_json::Value> =
            ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [held, free] = &lines[..] else { panic!("{ended:?}") };
        assert_eq!((&held["schema"], &held["path"]), (&1.into(), &"/look/json/a".into()));
        assert_eq!((&held["held"], &held["recipe"]), (&true.into(), &"mutex".into()));
        let holder = &held["holders"][0];
        assert_eq!(holder["token"], guard.fencing_token().as_u128().to_string());
        assert_eq!(holder["path"], guard.path().as_str());
        assert_eq!(holder["identity"]["pid"], std::process::id());
        assert_eq!((&free["held"], &free["recipe"]), (&false.into(), &serde_json::Value::Null));
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn following_prints_a_path_again_when_its_contenders_change() {
    for fixture in Fixture::both().await {
        let mutex = Mutex::new(&fixture.manager, "/look/follow/a").unwrap();
        let mut running = fixture.start(&["inspect", "-w", "--interval", "1h", "/look/follow/a"]);
        running.until("free").await;
        let guard = mutex.acquire().await.unwrap();
        running.until("held by 1, 0 waiting").await;
        guard.release().await.unwrap();
        running.until("free").await;
    }
}

#[tokio::test]
async fn the_address_of_each_client_comes_from_the_servers_where_they_say_it() {
    for fixture in Fixture::both().await {
        let mutex = Mutex::new(&fixture.manager, "/look/clients/a").unwrap();
        let guard = mutex.acquire().await.unwrap();
        let ended = fixture.run(&["inspect", "--clients", "/look/clients/a"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        if fixture.is_real {
            ended.has(&["session 0x", " is 127.0.0.1:", &format!(" at server {}", fixture.servers)]);
        } else {
            ended.has(&["does not say its clients"]);
        }
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_path_is_a_wrong_usage_and_no_server_is_69() {
    let fixture = Fixture::both().await.remove(0);
    let wrong = fixture.run(&["inspect", "no/slash"]).await;
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
    let none = fixture.run(&["--connect", "127.0.0.1:1", "--connect-timeout", "100ms", "tree", "/"]).await;
    assert_eq!((none.code, none.messages.lines().count()), (Some(69), 1), "{none:?}");
}
