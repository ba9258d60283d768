use lockkeeper::error::LossReason;
use lockkeeper::{Election, Mutex};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::Subject;

use crate::fixture::Fixture;
use crate::screen::Terminal;

/// A session that is not closed is there for an hour.
#[tokio::test]
async fn every_subcommand_closes_its_session() {
    let fixture = Fixture::patient().await;
    let patient = ["--session-timeout", "1h"];
    let server = fixture.embedded.as_ref().unwrap();
    let guard = Mutex::new(&fixture.manager, "/look/close/a").unwrap().acquire().await.unwrap();
    let before = server.sessions();
    for arguments in [
        &["inspect", "/look/close/a"][..],
        &["tree", "/"],
        &["deadlocks", "/"],
        &["revoke", "/look/close/a"],
        &["revoke", "/look/close/none"],
        &["doctor"],
        &["top", "-b", "-n", "1"],
        &["get", "/look/close/a"],
        &["get", "/look/close/none"],
        &["ls", "/"],
        &["ls", "-l", "/look"],
        &["wait", "/look/close/none"],
        &["wait", "/look/close/a", "--timeout", "0.1"],
        &["check", "/", "--holder-older", "0s"],
        &["queue", "list", "/look/close/none"],
        &["once", "/look/close/once", "--show"],
        &["once", "/look/close/once", "--reset"],
        &["__paths", "lockkeeper", "ls", "/look/cl"],
        &["lock", "/look/close/b", "--", "true"],
        &["read", "/look/close/rw", "--", "true"],
        &["write", "/look/close/rw", "--", "true"],
        &["semaphore", "-n", "1", "/look/close/pool", "--", "true"],
        &["multi", "/look/close/b", "/look/close/c", "--", "true"],
        &["elect", "/look/close/e", "--", "true"],
        &["once", "/look/close/once", "--", "true"],
        &["once", "--every", "1h", "/look/close/slots", "--try", "--", "true"],
        &["lock", "/look/close/none", "--", "/no/such/program"],
        &["lock", "/look/close/a", "--try", "--", "true"],
        &["release", "/look/close/a", "--force", "--yes"],
    ] {
        fixture.run(&[&patient, arguments].concat()).await;
        assert_eq!(server.sessions(), before, "{arguments:?}");
    }
    let guard = (guard, Mutex::new(&fixture.manager, "/look/close/a").unwrap().acquire().await.unwrap());
    for arguments in [
        &["watch", "/look/close/a"][..],
        &["inspect", "-w", "/look/close/a"],
        &["top"],
        &["top", "-b"],
        &["deadlocks", "/", "--watch"],
        &["lock", "/look/close/a", "--", "true"],
        &["release", "/look/close/a", "--force"],
    ] {
        let mut terminal = Terminal::start(&fixture, &[&patient, arguments].concat());
        let opened = async || (server.sessions().len() > before.len()).then_some(());
        eventually("a session", Timing::event(), opened).await.unwrap();
        terminal.signal("TERM");
        assert_eq!(terminal.end().await, 128 + 15, "{arguments:?}");
        let closed = async || (server.sessions() == before).then_some(());
        eventually("no session more", Timing::event(), closed).await.unwrap();
    }
    drop(guard);
}

#[tokio::test]
async fn a_holder_that_listens_is_asked() {
    for fixture in Fixture::both().await {
        let nobody = fixture.run(&["revoke", "/look/ask/a"]).await;
        assert_eq!(nobody.code, Some(1), "{nobody:?}");
        let guard = Mutex::new(&fixture.manager, "/look/ask/a").unwrap().acquire().await.unwrap();
        let asked = fixture.run(&["revoke", "/look/ask/a"]).await;
        assert_eq!(asked.code, Some(0), "{asked:?}");
        asked.has(&["asked host=", &format!("pid={}", std::process::id())]);
        guard.revoke_requested().await.unwrap();
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

/// A program with the library that does not listen: nothing there writes its name again.
#[tokio::test]
async fn a_holder_that_does_not_listen_stays_known_after_a_request() {
    for fixture in Fixture::both().await {
        let path = "/look/deaf/a";
        let mutex = Mutex::new(&fixture.manager, path).unwrap();
        let pid = format!("pid={}", std::process::id());
        let guard = mutex.with_node_data(format!("host=a {pid} ticket 7")).acquire().await.unwrap();
        for _ in 0..2 {
            assert_eq!(fixture.run(&["revoke", path]).await.code, Some(0));
        }
        for look in [&["inspect", path][..], &["tree", "/look/deaf"], &["top", "-b", "-n", "1", "/look/deaf"]]
        {
            let seen = fixture.run(look).await;
            seen.has(&[&format!("host=a {pid} ticket 7 (asked to release)")]);
            assert_eq!(seen.output.matches("(asked to release)").count(), 1, "{seen:?}");
        }
        let json = fixture.run(&["inspect", "-o", "json", path]).await;
        json.has(&["\"revoke_requested\":true", "\"note\":\"ticket 7\""]);
        // The data of a candidate is its name, and Curator reads that, too.
        let id = format!("host=a {pid}");
        let leads = Election::new(&fixture.manager, "/look/deaf/e", id).unwrap().campaign().await.unwrap();
        let candidate = leads.hold().path().to_owned();
        assert_eq!(fixture.run(&["revoke", "/look/deaf/e"]).await.code, Some(0));
        assert_eq!(fixture.run(&["get", &candidate]).await.output, "__REVOKE__");
        // It may listen later.
        guard.revoke_requested().await.unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_is_taken_away_only_by_force_and_only_when_it_is_confirmed() {
    for fixture in Fixture::both().await {
        let path = "/look/force/a";
        let guard = Mutex::new(&fixture.manager, path).unwrap().acquire().await.unwrap();
        let refused = fixture.run(&["release", path]).await;
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(refused.messages.contains("--force"), "{refused:?}");
        let unconfirmed = fixture.run(&["release", path, "--force"]).await;
        assert_eq!(unconfirmed.code, Some(64), "{unconfirmed:?}");
        assert!(unconfirmed.messages.contains("--yes"), "{unconfirmed:?}");
        assert!(guard.is_valid());

        let done = fixture.run(&["release", path, "--force", "--yes"]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        let token = guard.fencing_token();
        let token = format!("refuse every token below {}", token.mark_above().as_u128());
        done.has(&["two holders", &token, &format!("deleted {}", guard.path())]);
        assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
        let again = fixture.run(&["release", path, "--force", "--yes"]).await;
        assert_eq!(again.code, Some(1), "{again:?}");
    }
}

#[tokio::test]
async fn a_later_contender_is_never_hit() {
    for fixture in Fixture::both().await {
        let path = "/look/later/a";
        let mutex = Mutex::new(&fixture.manager, path).unwrap();
        let first = mutex.acquire().await.unwrap();
        let node = format!("{:#x}", first.fencing_token().as_u64());
        let mut terminal = Terminal::start(&fixture, &["release", path, "--force", "--node", &node]);
        terminal.shows(&["two holders", "type yes to continue:"]).await;
        first.release().await.unwrap();
        let second = mutex.acquire().await.unwrap();
        terminal.press("yes\n");
        terminal.shows(&["do not exist any more"]).await;
        assert_eq!(terminal.ended().await, 1);
        assert!(second.is_valid());
        let gone = fixture.run(&["revoke", path, "--node", &node]).await;
        assert_eq!(gone.code, Some(1), "{gone:?}");
        second.check().unwrap();
        second.release().await.unwrap();
    }
}

#[tokio::test]
async fn another_answer_than_yes_does_nothing() {
    for fixture in Fixture::both().await {
        let path = "/look/no/a";
        let guard = Mutex::new(&fixture.manager, path).unwrap().acquire().await.unwrap();
        let mut terminal = Terminal::start(&fixture, &["release", path, "--force"]);
        terminal.shows(&["type yes to continue:"]).await;
        terminal.press("y\n");
        terminal.shows(&["nothing was done"]).await;
        assert_eq!(terminal.ended().await, 1);
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_session_of_the_command_stays_alive_while_a_person_thinks() {
    let fixture = Fixture::both().await.remove(0);
    let path = "/look/think/a";
    let guard = Mutex::new(&fixture.manager, path).unwrap().acquire().await.unwrap();
    let transcript = fixture.embedded.as_ref().unwrap().transcript();
    let mut terminal = Terminal::start(
        &fixture,
        &["release", path, "--force", "--session-timeout", "4s", "--tick-time", "1s"],
    );
    terminal.shows(&["type yes to continue:"]).await;
    let passed = transcript.passed();
    let lists = |subject| subject == Subject::Request(Op::GetChildren);
    let session = passed.iter().find(|of| lists(of.subject)).unwrap().session;
    let is_confirmed =
        async || transcript.passed().iter().skip(passed.len()).any(|of| of.session == session).then_some(());
    eventually("a sign of life", Timing::event(), is_confirmed).await.unwrap();
    terminal.press("yes\n");
    assert_eq!(terminal.ended().await, 0);
    assert_eq!(guard.lost().await.reason, LossReason::NodeDeleted);
}
