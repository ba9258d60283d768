//! What the command says while it runs, with -v and as JSON.

use lockkeeper_testserver::TestServer;

use crate::fixture::{Fixture, Running, UNTIL_A_SIGNAL};

/// Reads messages until one has all of these texts.
async fn message(running: &mut Running, parts: &[&str]) -> String {
    loop {
        let message = running.message().await;
        if parts.iter().all(|part| message.contains(part)) {
            return message;
        }
    }
}

#[tokio::test]
async fn a_wait_says_behind_whom_and_the_link_is_said_to_be_lost_and_back() {
    let server = TestServer::start().await.unwrap();
    let fixture = Fixture::at(&server.connect_string());
    let script = "echo held; read line";
    let mut holder = fixture.start(["lock", "/log/a", "--", "sh", "-c", script]);
    holder.until("held").await;
    let behind = format!("pid={} owner=sh[{}]", holder.pid(), holder.pid());
    let mut waiter = fixture.start(["-v", "lock", "/log/a", "--", "sh", "-c", script]);
    message(&mut waiter, &["waiting in the queue", "ahead=1", &behind]).await;
    let mut json = fixture.start(["lock", "/log/a", "-v", "--log-format", "json", "--", "sh", "-c", script]);
    let line = message(&mut json, &["waiting in the queue"]).await;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["schema"], &line["level"]), (&1.into(), &"debug".into()));
    assert!(line["fields"]["predecessor"].as_str().unwrap().contains("-lock-"), "{line}");
    assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    for running in [&mut waiter, &mut json] {
        server.drop_connections();
        message(running, &["suspended", "the link is down"]).await;
        message(running, &["connected", "the link is up again"]).await;
    }
    holder.ended().await;
    message(&mut waiter, &["acquired", "token"]).await;
    waiter.ended().await;
    json.ended().await;
}

#[tokio::test]
async fn every_message_is_a_line_of_json_if_that_is_wanted() {
    let server = TestServer::start().await.unwrap();
    let fixture = Fixture::at(&server.connect_string()).brief();
    let script = format!("exec 2>/dev/null; trap 'exit 5' TERM; echo ready; {UNTIL_A_SIGNAL}");
    let mut running = fixture.start(["lock", "/log/json", "--log-format", "json", "--", "sh", "-c", &script]);
    running.until("ready").await;
    server.freeze();
    let ended = running.ended().await;
    assert_eq!(ended.code, Some(79), "{ended:?}");
    let lines: Vec<serde_json::Value> =
        ended.messages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |level: &str, part: &str| {
        lines.iter().any(|line| line["level"] == level && line["message"].as_str().unwrap().contains(part))
    };
    assert!(has("warn", "no server confirms the session"), "{ended:?}");
    assert!(lines[0]["message"].as_str().unwrap().contains("the program gets SIGTERM"), "{ended:?}");
    // Another process says this one.
    server.thaw();
    let none = fixture.ended(["--log-format", "json", "lock", "/log/none", "--", "/no/such/program"]).await;
    let line: serde_json::Value = serde_json::from_str(none.messages.trim()).unwrap();
    assert_eq!((none.code, &line["level"]), (Some(127), &"warn".into()), "{none:?}");
    let wrong = fixture.ended(["--log-format", "json", "inspect", "no/slash"]).await;
    let line: serde_json::Value = serde_json::from_str(wrong.messages.trim()).unwrap();
    assert_eq!((wrong.code, &line["level"]), (Some(64), &"error".into()), "{wrong:?}");
}
