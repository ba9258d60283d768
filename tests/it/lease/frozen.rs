//! A holder that was stopped for longer than its session (SIGSTOP) holds nothing when it continues.

use std::process::Stdio;
use std::time::Duration;

use lockkeeper::Mutex;
use lockkeeper_tests::{Ensemble, Timing};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{TICK, connect, no_node_is_left, nodes_become};

pub(super) const SESSION: Duration = Duration::from_secs(2);

/// A process that holds the lock and works under it.
pub(super) struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    pub(super) fn start(connect: &str) -> Self {
        let (session, tick) = (SESSION.as_millis().to_string(), TICK.as_millis().to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_contender"))
            .args([connect, "/lock", "/none", &session, &tick, "1", "once"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn next(&mut self) -> String {
        let line = tokio::time::timeout(Timing::settle(), self.lines.next_line()).await;
        line.expect("a line in time").unwrap().expect("a living worker")
    }

    pub(super) async fn says(&mut self, what: &str) {
        while !self.next().await.starts_with(what) {}
    }

    pub(super) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

fn now() -> u128 {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap()).as_nanos()
}

#[tokio::test]
async fn a_continued_holder_finds_its_loss_at_its_first_check_and_its_work_is_not_polled_again() {
    let ensemble = Ensemble::start(1).await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    for _ in 0..3 {
        let mut worker = Worker::start(&ensemble.connect_string());
        worker.says("granted").await;
        let next = mutex.acquire();
        let frozen = async {
            nodes_become(&ensemble, "/lock", 2).await;
            // Right after a poll: not between the check of the clock and the poll that it allows.
            worker.says("polled").await;
            worker.signal(Signal::STOP);
        };
        let (next, ()) = tokio::join!(next, frozen);
        let granted = now();
        worker.signal(Signal::CONT);
        let (mut polls, mut checks) = (0, Vec::new());
        loop {
            let line = worker.next().await;
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["polled", at] => polls += usize::from(at.parse::<u128>().unwrap() > granted),
                ["checked", at, is_valid] if at.parse::<u128>().unwrap() > granted => {
                    checks.push(is_valid == &"true")
                }
                ["ended", results @ ..] => {
                    let results = results.join(" ");
                    assert!(results.starts_with("Err(Lost") && results.contains(" Err(Lost("), "{results}");
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(polls, 0, "the work was polled after another contender was granted");
        assert_eq!(checks, [false], "the first check after the stop");
        next.unwrap().release().await.unwrap();
        no_node_is_left(&ensemble, "/lock").await;
    }
}
