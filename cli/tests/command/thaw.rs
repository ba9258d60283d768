//! All processes of a command are stopped, as a machine that sleeps or a frozen control group does it, and
//! continue in every order.

use lockkeeper::{ConnectionManager, Mutex};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;

use crate::fixture::{Fixture, Running, gone, send, signal};
use crate::processes::{guard_of, supervisor_of};

/// Prints the time of the boot clock again and again, also after each signal that can be ignored.
const CLOCK: &str = "trap '' TERM; echo $$; while :; do read up idle < /proc/uptime; echo $up; done";

/// Reads a line, and ends by itself.
const READER: &str = "echo $$; read line; echo got $line; exit 7";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Command,
    Guard,
    Supervisor,
    Program,
}

use Part::{Command, Guard, Program, Supervisor};

/// Every order of those that matter to each other, with the guard as the first and as the last one.
fn orders() -> Vec<[Part; 4]> {
    let parts = [Command, Supervisor, Program];
    let mut orders = Vec::new();
    for a in parts {
        for b in parts.into_iter().filter(|part| *part != a) {
            let c = parts.into_iter().find(|part| ![a, b].contains(part)).unwrap();
            orders.extend([[Guard, a, b, c], [a, b, c, Guard]]);
        }
    }
    orders
}

/// A command whose processes are all stopped.
struct Frozen {
    running: Running,
    processes: Processes,
}

struct Processes {
    command: i32,
    guard: i32,
    supervisor: i32,
    program: i32,
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Nobody else lets them continue.
        if std::thread::panicking() {
            for pid in [self.program, self.supervisor, self.guard, self.command] {
                send("KILL", pid);
            }
        }
    }
}

impl Frozen {
    async fn start(fixture: &Fixture, path: &str, on_loss: &str, script: &str) -> Self {
        let mut running = fixture.start(["lock", path, "--on-loss", on_loss, "--", "sh", "-c", script]);
        let program = running.line().await.parse().unwrap();
        let command = running.pid();
        let (guard, supervisor) = (guard_of(command).await, supervisor_of(command).await);
        let frozen = Self { running, processes: Processes { command, guard, supervisor, program } };
        // The program first: nothing acts on it while it is stopped.
        for part in [Program, Supervisor, Guard, Command] {
            signal("STOP", frozen.pid(part));
            frozen.until_stopped(part).await;
        }
        frozen
    }

    fn pid(&self, part: Part) -> i32 {
        match part {
            Command => self.processes.command,
            Guard => self.processes.guard,
            Supervisor => self.processes.supervisor,
            Program => self.processes.program,
        }
    }

    async fn until_stopped(&self, part: Part) {
        let pid = self.pid(part);
        let look = async || state(pid).is_none_or(|state| state == 'T').then_some(());
        eventually(format!("{part:?} is stopped"), Timing::event(), look).await.unwrap();
    }

    /// Lets a part continue, and waits until it does. It may be dead already.
    async fn thaw(&self, part: Part) {
        let pid = self.pid(part);
        send("CONT", pid);
        let look = async || state(pid).is_none_or(|state| state != 'T').then_some(());
        eventually(format!("{part:?} continues"), Timing::event(), look).await.unwrap();
    }
}

/// The letter of the state of a process.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn up() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn after_a_freeze_beyond_the_lease_nothing_of_the_program_runs_once_the_command_or_supervisor_does() {
    let server = TestServer::start().await.unwrap();
    // Long enough for a busy machine to stop all processes of a command before its lease is over.
    let fixture = Fixture { session_timeout: "10s", ..Fixture::at(&server.connect_string()) };
    let manager = ConnectionManager::connect(&fixture.servers).await.unwrap();
    let cases: Vec<_> = ["term", "kill", "kill -s CONT -- -$LOCKKEEPER_GROUP"]
        .into_iter()
        .flat_map(|on_loss| orders().into_iter().map(move |order| (on_loss, order)))
        // The order counts for one policy; the others follow the same rule.
        .filter(|(on_loss, order)| *on_loss == "term" || *order == [Guard, Command, Supervisor, Program])
        .collect();
    let mut frozen = Vec::new();
    for (number, (on_loss, order)) in cases.into_iter().enumerate() {
        let path = format!("/thaw/{number}");
        frozen.push((Frozen::start(&fixture, &path, on_loss, CLOCK).await, path, on_loss, order));
    }
    for (frozen, path, on_loss, order) in frozen {
        let guard = Mutex::new(&manager, &path).unwrap().acquire().await.unwrap();
        let second_holds = up();
        let at = |part| order.iter().position(|of| *of == part).unwrap();
        for part in order {
            frozen.thaw(part).await;
            if [Command, Supervisor].contains(&part) {
                // Whatever continues first kills the program, also if the other one never continues.
                gone(frozen.pid(Program)).await;
            }
        }
        let ended = frozen.running.ended().await;
        assert_eq!(ended.code, Some(79), "{order:?} {on_loss}: {}", ended.messages);
        if at(Program) > at(Command).min(at(Supervisor)) {
            let last = ended.output.lines().filter_map(|line| line.parse().ok()).next_back().unwrap_or(0.0);
            assert!(last <= second_holds, "{order:?} {on_loss}: {last} beside {second_holds}");
        }
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn after_a_freeze_within_the_lease_the_program_continues_in_every_order() {
    let server = TestServer::start().await.unwrap();
    let fixture = Fixture::at(&server.connect_string());
    // One after the other: each of them has all of its lease.
    for order in orders() {
        let mut frozen = Frozen::start(&fixture, "/thaw/within", "term", READER).await;
        for part in order {
            frozen.thaw(part).await;
        }
        frozen.running.write("line\n").await;
        frozen.running.until("got line").await;
        assert_eq!(frozen.running.ended().await.code, Some(7), "{order:?}");
    }
}
