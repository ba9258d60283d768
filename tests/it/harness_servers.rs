//! The servers of the harness: starting, killing, pausing, restarting.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};

use lockkeeper_tests::{CreateMode, Ensemble, HarnessError, RawClient, Role, Timing, eventually, left_out};
use lockkeeper_testserver::TestServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

type Outcome = Result<(), HarnessError>;

#[tokio::test]
async fn a_standalone_server_serves() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::lend().await?;
    assert_eq!(ensemble.server(0).role().await?, Role::Standalone);

    let mut client = ensemble.raw().await?;
    client.create("/a", b"1", CreateMode::Persistent).await?;
    let (name, stat) = client.create("/a/b-", b"2", CreateMode::EphemeralSequential).await?;
    assert_eq!(name, "/a/b-0000000000");
    assert_eq!(stat.ephemeral_owner, client.session());
    assert_eq!(client.children("/a").await?, ["b-0000000000"]);
    assert_eq!(client.data("/a").await?.0, b"1");
    assert!(client.delete("/none").await.unwrap_err().is_no_node());
    assert_eq!(client.exists("/none").await?, None);
    Ok(())
}

#[tokio::test]
async fn servers_share_an_archive_of_their_classes() -> Outcome {
    if left_out() {
        return Ok(());
    }
    for server in Ensemble::builder().servers(3).lend().await?.servers() {
        let maps = format!("/proc/{}/maps", server.pid().expect("it runs"));
        let maps = fs::read_to_string(maps).expect("the maps of a process of ours");
        assert!(maps.contains("/zookeeper-classes-"), "{maps}");
    }
    Ok(())
}

#[tokio::test]
async fn another_server_that_has_taken_the_port_is_not_taken_for_its_own() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::start(1).await?;
    let server = ensemble.server(0);
    server.stop().await?;
    let other = TestServer::builder().port(server.address().port()).start().await.unwrap();
    assert!(matches!(server.restart().await, Err(HarnessError::EndedAtStart { .. })));
    other.stop().await;
    server.restart().await
}

#[tokio::test]
async fn three_servers_agree_on_a_leader() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().servers(3).lend().await?;
    let leader = ensemble.leader().await?;
    assert_eq!(leader.role().await?, Role::Leader);
    assert_eq!(ensemble.followers().await?.len(), 2);
    assert_eq!(ensemble.connect_string().split(',').count(), 3);
    Ok(())
}

#[tokio::test]
async fn a_killed_leader_is_replaced_and_returns_as_a_follower() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().servers(3).lend().await?;
    ensemble.raw().await?.create("/kept", b"", CreateMode::Persistent).await?;
    let first = ensemble.leader().await?;
    first.kill().await?;
    assert_eq!(first.pid(), None);

    let second = ensemble.leader().await?;
    assert_ne!(second.index(), first.index());
    assert!(ensemble.raw().await?.exists("/kept").await?.is_some());

    first.restart().await?;
    ensemble.settled().await?;
    assert_eq!(first.role().await?, Role::Follower);
    assert!(RawClient::connect(first.address()).await?.exists("/kept").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_paused_leader_is_replaced_and_rejoins_when_resumed() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().servers(3).lend().await?;
    let first = ensemble.leader().await?;
    first.pause().await?;
    assert!(!first.is_running());

    assert_ne!(ensemble.leader().await?.index(), first.index());
    first.resume().await?;
    ensemble.settled().await?;
    assert_eq!(first.role().await?, Role::Follower);
    Ok(())
}

#[tokio::test]
async fn a_restarted_server_keeps_its_data_and_its_address() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::start(1).await?;
    let server = ensemble.server(0);
    ensemble.raw().await?.create("/kept", b"data", CreateMode::Persistent).await?;
    let (address, pid) = (server.address(), server.pid());

    server.restart().await?;
    assert_eq!(server.address(), address);
    assert_ne!(server.pid(), pid);
    assert_eq!(ensemble.raw().await?.data("/kept").await?.0, b"data");

    server.kill().await?;
    assert!(matches!(server.pause().await, Err(HarnessError::Down { server: 0 })));
    server.restart().await?;
    assert_eq!(ensemble.raw().await?.data("/kept").await?.0, b"data");
    Ok(())
}

#[tokio::test]
async fn the_ephemeral_nodes_of_an_expired_session_are_deleted() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::builder().servers(3).lend().await?;
    let follower = ensemble.followers().await?[0];
    let mut client = RawClient::connect(follower.address()).await?;
    client.create("/mine", b"", CreateMode::Ephemeral).await?;
    let leader = ensemble.leader().await?;
    let dump = ensemble.dump().await?;
    assert!(dump.sessions.contains(&client.session()));
    assert!(dump.ephemerals[&client.session()].contains("/mine"));

    ensemble.expire_session(client.session(), client.password()).await?;
    assert_eq!(ensemble.raw().await?.exists("/mine").await?, None);
    let refused = RawClient::attach(leader.address(), client.session(), client.password()).await;
    assert!(matches!(refused, Err(HarnessError::SessionRefused { .. })));
    Ok(())
}

#[tokio::test]
async fn a_silent_session_expires_after_its_timeout() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::lend().await?;
    let client = RawClient::connect_for(ensemble.server(0).address(), Duration::from_millis(1)).await?;
    assert_eq!(client.timeout(), Duration::from_secs(1), "two ticks is the least");
    ensemble.session_gone(client.session()).await
}

#[tokio::test]
async fn reports_count_watches_and_packets() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::lend().await?;
    let server = ensemble.server(0);
    let mut client = ensemble.raw().await?;
    client.watch("/").await?;
    client.watch("/zookeeper").await?;
    assert_eq!(server.watch_count().await?, 2);
    assert!(server.watches().await?["/zookeeper"].contains(&client.session()));
    assert!(server.packets_received().await? >= 3);

    let connections = server.connections().await?;
    let mine = connections.iter().find(|connection| connection.session == Some(client.session())).unwrap();
    assert_eq!(mine.received, 3, "the handshake and two reads");
    Ok(())
}

#[tokio::test]
async fn a_dropped_ensemble_leaves_nothing() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = Ensemble::start(1).await?;
    let traces = Traces::of(&ensemble);
    ensemble.server(0).pause().await?;
    drop(ensemble);
    assert!(traces.are_gone());
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_its_log() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let failed = Ensemble::builder().setting("tickTime", "soon").start().await.unwrap_err();
    let HarnessError::EndedAtStart { log, .. } = failed else { panic!("{failed}") };
    assert!(log.contains("soon"), "{log}");
    Ok(())
}

/// The processes and the folder of a running ensemble.
struct Traces {
    pids: Vec<u32>,
    folder: PathBuf,
}

impl Traces {
    fn of(ensemble: &Ensemble) -> Self {
        let pids = ensemble.servers().iter().filter_map(|server| server.pid()).collect();
        let folder = ensemble.server(0).log_file().ancestors().nth(2).unwrap().to_owned();
        Self { pids, folder }
    }

    /// True when neither the folder nor a process of these servers exists. A zombie does not count.
    fn are_gone(&self) -> bool {
        let folder = self.folder.to_str().unwrap();
        let ours = |pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| contains(&line, folder));
        !self.pids.iter().any(ours) && !self.folder.exists()
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn no_server_outlives_its_test_process() -> Outcome {
    if left_out() {
        return Ok(());
    }
    for (signal, state) in [
        (Signal::KILL, "running"),
        (Signal::KILL, "paused"),
        (Signal::INT, "running"),
        (Signal::TERM, "paused"),
    ] {
        // A job that a shell starts in the background ignores SIGINT, and so do the children of that job.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_contender"), "server", state]);
        let mut parent = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("the server's process id and folder");
        let (pid, folder) = line.split_once(' ').unwrap();
        let traces = Traces { pids: vec![pid.parse().unwrap()], folder: folder.into() };
        assert!(!traces.are_gone());

        let process = parent.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
        kill_process(process, signal).unwrap();
        tokio::time::timeout(Timing::signal(), parent.wait()).await.expect("the end of the parent").unwrap();
        let gone = async || traces.are_gone().then_some(());
        eventually(format!("the end of the server after {signal:?}"), Timing::signal(), gone).await?;
    }
    Ok(())
}

/// Runs one test of this binary in a process of its own. Returns whether it passed, and its output.
async fn run_alone(test: &str, variable: &str, value: &str) -> (bool, String) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env_remove("JAVA_HOME").env_remove("LOCKKEEPER_WITHOUT_ZOOKEEPER");
    let output = command.env(variable, value).kill_on_drop(true).output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn without_java_a_test_fails_and_says_what_to_install() {
    if left_out() {
        return;
    }
    let test = "harness_servers::a_standalone_server_serves";
    let (passed, text) = run_alone(test, "PATH", "/nowhere").await;
    assert!(!passed);
    assert!(text.contains("apt-get install zookeeper"), "{text}");
}

#[tokio::test]
async fn a_test_that_is_left_out_prints_so() {
    let test = "harness_servers::a_standalone_server_serves";
    let (passed, text) = run_alone(test, "LOCKKEEPER_WITHOUT_ZOOKEEPER", "1").await;
    assert!(passed);
    assert!(text.contains(&format!("LEFT OUT (LOCKKEEPER_WITHOUT_ZOOKEEPER=1): {test}")), "{text}");
}

#[tokio::test]
async fn the_shared_server_is_one_for_all() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let (one, other) = tokio::try_join!(Ensemble::shared(), Ensemble::shared())?;
    assert_eq!(one.connect_string(), other.connect_string());
    Ok(())
}

#[tokio::test]
async fn an_ensemble_of_two_is_refused() {
    let refused = Ensemble::start(2).await;
    assert!(matches!(refused, Err(HarnessError::Servers { asked: 2 })));
}
