//! The program ends before the lease does.

use lockkeeper::{ConnectionManager, Revoker};
use lockkeeper_tests::{Direction, Ensemble, Proxies, Timing, eventually, left_out};
use lockkeeper_testserver::{Isolation, TestEnsemble, TestServer};

use crate::fixture::{Fixture, Running, UNTIL_A_SIGNAL, gone};

/// Prints the time of the boot clock again and again, also after SIGTERM.
const CLOCK: &str =
    "trap 'echo asked' TERM; echo ready; while :; do read up idle < /proc/uptime; echo $up; done";

/// Prints it once.
const ONCE: &str = "read up idle < /proc/uptime; echo $up";

/// The last time in the output.
fn last_time(output: &str) -> f64 {
    output.lines().filter_map(|line| line.parse().ok()).next_back().expect("a time")
}

/// The holder is cut off by `cut`. Its program has ended when the other command gets the lock.
async fn assert_over_before_the_next_holder(
    holding: &Fixture,
    waiting: &Fixture,
    path: &str,
    cut: impl FnOnce(),
) {
    let mut holder = holding.start(["lock", path, "--", "sh", "-c", CLOCK]);
    holder.until("ready").await;
    let waiter = waiting.start(["lock", path, "--", "sh", "-c", ONCE]);
    waiting.contenders(path, 2).await;
    cut();
    let (held, waited) = tokio::join!(holder.ended(), waiter.ended());
    assert!(held.output.lines().any(|line| line == "asked"), "it gets SIGTERM first: {}", held.messages);
    assert_eq!(held.code, Some(79), "{}", held.messages);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let (end, begin) = (last_time(&held.output), last_time(&waited.output));
    assert!(end <= begin, "the program ran until {end}, and the next one began at {begin}");
}

#[tokio::test]
async fn a_holder_that_is_cut_off_ends_its_program_before_another_holds() {
    let ensemble = TestEnsemble::start(2).await.unwrap();
    let [first, second] = ensemble.servers() else { panic!("two servers") };
    let (holding, waiting) =
        (Fixture::at(&first.connect_string()).brief(), Fixture::at(&second.connect_string()).brief());
    assert_over_before_the_next_holder(&holding, &waiting, "/lease/cut", || first.cut_off(Isolation::Stale))
        .await;
}

#[tokio::test]
async fn a_holder_that_is_cut_off_from_zookeeper_ends_its_program_before_another_holds() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::start(1).await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let (holding, waiting) =
        (Fixture::real(&proxies.connect_string()).brief(), Fixture::real(&ensemble.connect_string()).brief());
    let cut = || proxies.hold(Direction::Both);
    assert_over_before_the_next_holder(&holding, &waiting, "/lease/cut", cut).await;
}

#[tokio::test]
async fn a_stopped_command_does_not_keep_its_program_alive() {
    let ensemble = TestEnsemble::start(1).await.unwrap();
    let fixture = Fixture::at(&ensemble.connect_string()).brief();
    let script = "echo $$; while :; do :; done";
    let mut running = fixture.start(["lock", "/lease/stopped", "--", "sh", "-c", script]);
    let program = running.line().await.parse().unwrap();
    running.signal("STOP");
    gone(program).await;
    running.signal("CONT");
    assert_eq!(running.ended().await.code, Some(79));
}

/// A command whose program reports what it gets, and the server that can cut it off.
async fn frozen(path: &str, on_loss: &[&str], script: &str) -> (TestServer, Running) {
    let server = TestServer::start().await.unwrap();
    let fixture = Fixture::at(&server.connect_string()).brief();
    let command = [&["lock", path], on_loss, &["--", "sh", "-c", script]].concat();
    let mut running = fixture.start(command);
    running.until("ready").await;
    server.freeze();
    (server, running)
}

#[tokio::test]
async fn on_loss_kill_asks_nothing() {
    let (_server, running) = frozen("/lease/kill", &["--on-loss", "kill"], CLOCK).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, Some(79));
    assert!(!ended.output.contains("asked"));
}

#[tokio::test]
async fn on_loss_a_command_is_run_and_finds_the_group() {
    let hook = "kill -s USR1 -- -$LOCKKEEPER_GROUP";
    let script =
        format!("trap 'echo asked; exit 5' USR1; trap 'echo SIGTERM' TERM; echo ready; {UNTIL_A_SIGNAL}");
    let (_server, running) = frozen("/lease/run", &["--on-loss", hook], &script).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.output.as_str()), (Some(79), "asked\n"), "{ended:?}");
}

#[tokio::test]
async fn on_loss_a_command_finds_the_path_the_node_and_the_token() {
    let names = "echo $LOCKKEEPER_PATH $LOCKKEEPER_NODE $LOCKKEEPER_TOKEN";
    let hook = format!("{names}; kill -s USR1 -- -$LOCKKEEPER_GROUP");
    let script = format!("trap 'exit 5' USR1; {names}; {UNTIL_A_SIGNAL}");
    let server = TestServer::start().await.unwrap();
    let fixture = Fixture::at(&server.connect_string()).brief();
    let mut running = fixture.start(["lock", "/lease/names", "--on-loss", &hook, "--", "sh", "-c", &script]);
    let read = running.line().await;
    server.freeze();
    let ended = running.ended().await;
    assert!(read.starts_with("/lease/names /lease/names/_c_"), "{read}");
    assert_eq!((ended.code, ended.output.trim()), (Some(79), read.as_str()), "{ended:?}");
    let why = "no server confirms the session, and the lease ends in";
    assert!(ended.messages.contains(why) && ended.messages.contains("--on-loss is run"), "{ended:?}");
}

#[tokio::test]
async fn on_loss_ignore_lets_the_program_end_by_itself_and_tells_the_loss() {
    let script = "trap 'echo asked' TERM; echo ready; read line; echo done";
    let (server, mut running) = frozen("/lease/ignore", &["--on-loss", "ignore"], script).await;
    let message = running.message().await;
    assert!(message.contains("lost"), "{message}");
    running.write("line\n").await;
    running.until("done").await;
    server.thaw();
    assert_eq!(running.ended().await.code, Some(79));
}

#[tokio::test]
async fn on_loss_does_on_zookeeper_what_it_says() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::start(1).await.unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let fixture = Fixture::real(&proxies.connect_string()).brief();
    let hook = "kill -s USR1 -- -$LOCKKEEPER_GROUP";
    let asked = "trap 'echo asked' TERM; trap 'echo hook' USR1; echo ready; read line; echo done; read line";
    // All of them lose their session at one time.
    let cases = [("kill", ""), (hook, "hook\n"), ("ignore", "done\n")].map(|(on_loss, output)| {
        let path = format!("/lease/on-loss/ends{}", output.trim());
        (fixture.start(["lock", &path, "--on-loss", on_loss, "--", "bash", "-c", asked]), on_loss, output)
    });
    let mut started = Vec::new();
    for (mut running, on_loss, output) in cases {
        running.until("ready").await;
        started.push((running, on_loss, output));
    }
    proxies.hold(Direction::Both);
    for (mut running, on_loss, output) in started {
        // The others must not end by the end of their input.
        let mut input = None;
        if on_loss != "ignore" {
            input = running.input.take();
        } else {
            let message = running.message().await;
            assert!(message.contains("lost"), "{message}");
            running.write("line\n").await;
        }
        let ended = running.ended().await;
        assert_eq!((ended.code, ended.output.as_str()), (Some(79), output), "{on_loss}: {ended:?}");
        drop(input);
    }
}

#[tokio::test]
async fn a_node_that_another_client_deletes_ends_the_program() {
    for fixture in Fixture::both().await.into_iter().map(Fixture::brief) {
        let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
        let script = "echo $LOCKKEEPER_NODE; sleep 1000 & wait";
        let mut running = fixture.start(["lock", "/lease/deleted", "--", "sh", "-c", script]);
        let node = running.line().await;
        assert!(manager.znodes().delete(&*node).await.unwrap());
        let ended = running.ended().await;
        assert_eq!(ended.code, Some(79), "{ended:?}");
    }
}

#[tokio::test]
async fn a_holder_that_is_asked_to_release_gets_sigterm_or_ignores_it() {
    for fixture in Fixture::both().await.into_iter().map(Fixture::brief) {
        let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
        for (on_revoke, waits, code) in [("term", UNTIL_A_SIGNAL, 6), ("ignore", "read line", 7)] {
            let script = format!("trap 'echo asked; exit 6' TERM; echo $LOCKKEEPER_NODE; {waits}; exit 7");
            let command = ["lock", "/lease/revoke", "--on-revoke", on_revoke, "--", "sh", "-c", &script];
            let mut running = fixture.start(command);
            let node = running.line().await;
            assert!(Revoker::new(&manager).ask_node(&*node).await.unwrap());
            if on_revoke == "term" {
                running.until("asked").await;
            } else {
                assert!(running.message().await.contains("another client asks for the lock"));
            }
            assert_eq!(running.ended().await.code, Some(code));
        }
    }
}

/// A request overwrites the data of the node.
#[tokio::test]
async fn a_holder_that_ignores_a_request_stays_visible_and_hears_of_the_next_one() {
    for fixture in Fixture::both().await {
        let path = "/lease/ignored";
        let script = "echo ready; read line";
        let command = ["lock", path, "--note", "ticket 7", "--on-revoke", "ignore", "--", "sh", "-c", script];
        let mut running = fixture.start(command);
        running.until("ready").await;
        for _ in 0..2 {
            assert_eq!(fixture.ended(["revoke", path]).await.code, Some(0));
            assert!(running.message().await.contains("another client asks for the lock"));
            let pid = running.pid();
            let visible =
                format!("\"pid\":{pid},\"owner\":\"sh[{pid}]\",\"note\":\"ticket 7 (asked to release)\"");
            let look = async || {
                let seen = fixture.ended(["inspect", "-o", "json", path]).await;
                seen.output.contains(&visible).then_some(())
            };
            eventually(visible.clone(), Timing::event(), look).await.unwrap();
        }
        running.ended().await;
    }
}

/// The permits of a semaphore have a node each, and the requests for them may be seen one after the other.
#[tokio::test]
async fn a_request_is_heard_once_for_each_of_several_nodes_at_most() {
    for fixture in Fixture::both().await {
        let path = "/lease/several";
        let permits = ["semaphore", "-n", "3", "--take", "2", path, "--on-revoke", "ignore"];
        let mut running =
            fixture.start([&permits[..], &["--", "sh", "-c", "echo ready; read line"]].concat());
        running.until("ready").await;
        for _ in 0..2 {
            assert_eq!(fixture.ended(["revoke", path]).await.code, Some(0));
            assert!(running.message().await.contains("another client asks for the lock"));
            let look = async || {
                let seen = fixture.ended(["inspect", "-o", "json", path]).await;
                (seen.output.matches(r#""note":"(asked to release)""#).count() == 2).then_some(())
            };
            eventually("both nodes say who holds", Timing::event(), look).await.unwrap();
        }
        let more = running.ended().await.messages;
        assert!(more.lines().count() <= 2, "{more}");
    }
}
