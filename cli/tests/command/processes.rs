//! Signals reach the program, and none of its processes outlives the command.

use lockkeeper_tests::{Timing, eventually};

use crate::fixture::{Fixture, Running, UNTIL_A_SIGNAL, children, gone, signal};

/// A program with a child in its group, and a grandchild in a session of its own. None of them ends by a
/// signal that can be ignored.
const FAMILY: &str = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > $0; sleep 1000' \
    $0 & sleep 1000 & while ! [ -s $0 ]; do :; done; echo ready; wait; wait; sleep 1000";

/// The process of the guard, once it runs.
pub(crate) async fn guard_of(pid: i32) -> i32 {
    let look = async || children(pid).first().copied();
    eventually("a guard", Timing::signal(), look).await.unwrap()
}

/// The process of the supervisor, once it runs.
pub(crate) async fn supervisor_of(pid: i32) -> i32 {
    guard_of(guard_of(pid).await).await
}

fn family(fixture: &Fixture, path: &str, folder: &tempfile::TempDir) -> Running {
    let file = folder.path().join("grandchild");
    fixture.start(["lock", path, "--", "sh", "-c", FAMILY, file.to_str().unwrap()])
}

#[tokio::test]
async fn the_program_gets_each_signal_and_decides_what_it_means() {
    for fixture in Fixture::both().await {
        let script = |name| format!("trap 'echo {name}; exit 9' {name}; echo ready; {UNTIL_A_SIGNAL}");
        // Beside each other, so that the test takes no longer than one of them.
        let each = ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"].map(|name| {
            let path = format!("/signal/{name}");
            (name, fixture.start(["lock", &path, "--", "sh", "-c", &script(name)]))
        });
        for (name, mut running) in each {
            running.until("ready").await;
            running.signal(name);
            running.until(name).await;
            assert_eq!(running.ended().await.code, Some(9), "{name}");
        }
        let mut running =
            fixture.start(["lock", "/signal/end", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
        running.until("ready").await;
        running.signal("TERM");
        assert_eq!(running.ended().await.code, Some(128 + 15));
    }
}

#[tokio::test]
async fn a_signal_that_was_ignored_at_the_start_stays_ignored_for_the_program() {
    let fixture = Fixture::embedded().await;
    let mut nohup = tokio::process::Command::new("nohup");
    fixture.reach(&mut nohup);
    nohup.arg(env!("CARGO_BIN_EXE_lockkeeper"));
    let script = "kill -s HUP $PPID $$; echo alive; read line";
    nohup.args(["lock", "/signal/nohup", "--", "sh", "-c", script]);
    let mut running = Running::start(&mut nohup);
    running.until("alive").await;
    running.signal("HUP");
    running.write("line\n").await;
    assert_eq!(running.ended().await.code, Some(0));
}

#[tokio::test]
async fn the_program_starts_with_no_signal_blocked() {
    let fixture = Fixture::embedded().await;
    let ended = fixture.ended(["lock", "/signal/mask", "--", "grep", "SigBlk", "/proc/self/status"]).await;
    assert!(ended.output.trim().ends_with("0000000000000000"), "{ended:?}");
}

#[tokio::test]
async fn kill_9_of_the_command_leaves_no_process() {
    for fixture in Fixture::both().await.into_iter().map(Fixture::brief) {
        let folder = tempfile::tempdir().unwrap();
        let mut running = family(&fixture, "/kill/command", &folder);
        running.until("ready").await;
        running.signal("KILL");
        assert_eq!(running.ended().await.code, None);
        // The servers free the lock when the session has ended.
        assert_eq!(fixture.ended(["lock", "/kill/command", "--", "true"]).await.code, Some(0));
    }
}

#[tokio::test]
async fn kill_9_of_the_supervisor_leaves_no_process() {
    for fixture in Fixture::both().await {
        let folder = tempfile::tempdir().unwrap();
        let mut running = family(&fixture, "/kill/supervisor", &folder);
        running.until("ready").await;
        signal("KILL", supervisor_of(running.pid()).await);
        let ended = running.ended().await;
        assert_eq!(ended.code, Some(70), "{ended:?}");
        assert_eq!(fixture.ended(["lock", "/kill/supervisor", "--try", "--", "true"]).await.code, Some(0));
    }
}

#[tokio::test]
async fn kill_9_of_the_command_and_the_supervisor_at_once_leaves_no_process() {
    for fixture in Fixture::both().await {
        let folder = tempfile::tempdir().unwrap();
        let mut running = family(&fixture, "/kill/both", &folder);
        running.until("ready").await;
        let supervisor = supervisor_of(running.pid()).await;
        // A command that is stopped cannot do anything about the supervisor's end.
        running.signal("STOP");
        signal("KILL", supervisor);
        running.signal("KILL");
        assert_eq!(running.ended().await.code, None);
    }
}

#[tokio::test]
async fn kill_9_of_the_guard_and_another_process_leaves_no_process() {
    let fixture = Fixture::embedded().await;
    for (name, code) in [("command", None), ("supervisor", Some(70))] {
        let folder = tempfile::tempdir().unwrap();
        let mut running = family(&fixture, &format!("/kill/guard/{name}"), &folder);
        running.until("ready").await;
        let (guard, supervisor) = (guard_of(running.pid()).await, supervisor_of(running.pid()).await);
        signal("KILL", guard);
        gone(guard).await;
        match name {
            "command" => running.signal("KILL"),
            _ => signal("KILL", supervisor),
        }
        assert_eq!(running.ended().await.code, code, "{name}");
    }
}

#[tokio::test]
async fn kill_9_of_all_three_processes_at_once_kills_the_program() {
    let fixture = Fixture::embedded().await;
    let mut running = fixture.start(["lock", "/kill/all", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    running.until("ready").await;
    let (guard, supervisor) = (guard_of(running.pid()).await, supervisor_of(running.pid()).await);
    // Neither can do anything about the supervisor's end.
    running.signal("STOP");
    signal("STOP", guard);
    signal("KILL", supervisor);
    signal("KILL", guard);
    running.signal("KILL");
    assert_eq!(running.ended().await.code, None);
}

#[tokio::test]
async fn a_program_continues_without_the_guard() {
    let fixture = Fixture::embedded().await;
    let mut running =
        fixture.start(["lock", "/kill/guard/alone", "--", "sh", "-c", "echo ready; read line; exit 5"]);
    running.until("ready").await;
    let guard = guard_of(running.pid()).await;
    signal("KILL", guard);
    gone(guard).await;
    running.write("line\n").await;
    assert_eq!(running.ended().await.code, Some(5));
}

#[tokio::test]
async fn a_command_that_dies_while_it_waits_leaves_no_process() {
    let fixture = Fixture::embedded().await;
    let mut holder = fixture.start(["lock", "/kill/waiting", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    let waiter = fixture.start(["lock", "/kill/waiting", "--", "echo", "ran"]);
    fixture.contenders("/kill/waiting", 2).await;
    let supervisor = supervisor_of(waiter.pid()).await;
    waiter.signal("KILL");
    gone(supervisor).await;
    assert_eq!(waiter.ended().await.output, "");
    holder.ended().await;
}

#[tokio::test]
async fn what_the_program_leaves_behind_ends_before_the_lock_is_released() {
    let fixture = Fixture::embedded().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left");
    let script = format!(
        "(trap 'echo asked; exit' TERM; echo $$ > $0; {UNTIL_A_SIGNAL}) & \
         while ! [ -s $0 ]; do :; done; exit 4"
    );
    let mut running =
        fixture.start(["lock", "/kill/left", "--", "sh", "-c", &script, file.to_str().unwrap()]);
    running.until("asked").await;
    assert_eq!(running.ended().await.code, Some(4));
}

#[tokio::test]
async fn what_the_program_leaves_in_a_session_of_its_own_is_asked_to_end_as_well() {
    let fixture = Fixture::embedded().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left");
    let left = format!("trap 'echo asked; exit' TERM; echo $$ > $0; {UNTIL_A_SIGNAL}");
    let script = "setsid sh -c \"$1\" $0 & while ! [ -s $0 ]; do :; done; exit 4";
    let program = ["sh", "-c", script, file.to_str().unwrap(), &left];
    let mut running = fixture.start([&["lock", "/kill/session", "--"][..], &program].concat());
    running.until("asked").await;
    assert_eq!(running.ended().await.code, Some(4));
}

/// A shell with `trap '' CHLD`, or a service manager that does the same, hands it on.
#[tokio::test]
async fn a_caller_that_ignores_the_ends_of_children_changes_nothing() {
    let fixture = Fixture::embedded().await;
    let ignoring = |path: &str, script: &str| {
        let mut env = tokio::process::Command::new("env");
        fixture.reach(&mut env);
        env.args([
            "--ignore-signal=CHLD",
            env!("CARGO_BIN_EXE_lockkeeper"),
            "lock",
            path,
            "--",
            "sh",
            "-c",
            script,
        ]);
        Running::start(&mut env)
    };
    let ended = ignoring("/kill/ignored", "grep SigIgn /proc/self/status; exit 7").ended().await;
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let ignored = ended.output.trim().strip_prefix("SigIgn:\t").unwrap();
    // Number 17 is SIGCHLD.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() >> 16 & 1, 0, "{ended:?}");
    assert_eq!(fixture.ended(["lock", "/kill/ignored", "--try", "--", "true"]).await.code, Some(0));
    let mut running = ignoring("/kill/ignored", "echo ready; exec sleep 1000");
    running.until("ready").await;
    signal("KILL", supervisor_of(running.pid()).await);
    assert_eq!(running.ended().await.code, Some(70));
}

#[tokio::test]
async fn in_a_pid_namespace_without_the_leader_of_its_group_the_command_does_its_work() {
    let fixture = Fixture::embedded().await;
    let unshare = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let mut command = tokio::process::Command::new("unshare");
    if !command.args(unshare).arg("true").status().await.unwrap().success() {
        println!("left out: this machine lets nobody make namespaces");
        return;
    }
    let mut command = tokio::process::Command::new("unshare");
    fixture.reach(&mut command);
    command.args(unshare).arg(env!("CARGO_BIN_EXE_lockkeeper"));
    command.args(["lock", "/kill/namespace", "--", "sh", "-c", "(sleep 1000 &); echo ran; exit 7"]);
    let ended = Running::start(&mut command).ended().await;
    assert_eq!(
        (ended.code, ended.output.as_str(), ended.messages.as_str()),
        (Some(7), "ran\n", ""),
        "{ended:?}"
    );
}

/// As `pkill -9 -f` chooses processes.
#[tokio::test]
async fn the_name_of_the_program_does_not_find_the_guard_and_the_supervisor() {
    let fixture = Fixture::embedded().await;
    let folder = tempfile::tempdir().unwrap();
    let mut running = family(&fixture, "/kill/by-name", &folder);
    running.until("ready").await;
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    for pid in [guard_of(running.pid()).await, supervisor_of(running.pid()).await] {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!line.contains(name), "{line:?}");
    }
    let killed = tokio::process::Command::new("pkill").args(["-KILL", "-f", name]).status().await.unwrap();
    assert!(killed.success());
    assert_eq!(running.ended().await.code, None);
}

#[tokio::test]
async fn the_arguments_of_the_program_may_be_larger_than_a_packet() {
    let fixture = Fixture::embedded().await;
    let mut arguments: Vec<String> =
        ["lock", "/run/large", "--", "sh", "-c", "echo $#; echo \"$1$3\" | wc -c"]
            .map(str::to_owned)
            .to_vec();
    arguments.extend(["sh", &"x".repeat(100_000), "", &"y".repeat(100_000), "a\nb"].map(str::to_owned));
    let ended = fixture.ended(arguments).await;
    assert_eq!((ended.code, ended.output.as_str()), (Some(0), "4\n200001\n"), "{ended:?}");
}
