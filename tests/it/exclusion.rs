//! Never two holders: four contending processes under faults.
//!
//! Each contender records when its guard was valid. The oracle compares these spans: by the lease clock no
//! two may overlap, whatever was killed, paused or cut; the tokens must grow with the grants; and the
//! register, written through the guard's transaction, must never return to an older token.

use std::process::Stdio;
use std::time::Duration;

use lockkeeper_tests::{Direction, Ensemble, LentEnsemble, Match, OpCode, Proxies, Timing};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::support::no_node_is_left;

const SESSION: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);

/// The number of sessions of each contender's pool.
const SESSIONS: [usize; 4] = [1, 2, 2, 3];

/// A contender process, and all lines of its output.
struct Contender {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    output: Vec<String>,
}

#[derive(Debug, Clone)]
struct Span {
    token: u64,
    granted: u128,
    valid: u128,
}

impl Contender {
    fn start(connect: &str, sessions: usize) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_contender"))
            .args([
                connect,
                "/locks/lock",
                "/register",
                &SESSION.as_millis().to_string(),
                &TICK.as_millis().to_string(),
                &sessions.to_string(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::unbounded_channel();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, output: Vec::new() }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until this contender is granted the lock once more.
    async fn granted(&mut self) {
        loop {
            let line = tokio::time::timeout(Timing::settle(), self.lines.recv()).await;
            let line = line.expect("a grant in time").expect("a living contender");
            let is_grant = line.starts_with("granted");
            self.output.push(line);
            if is_grant {
                return;
            }
        }
    }

    /// Reads the output so far: its grants do not count for the next [`Contender::granted`].
    fn drain(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.output.push(line);
        }
    }

    async fn stop(&mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let _ = tokio::time::timeout(Timing::settle(), self.child.wait()).await;
        let _ = self.child.kill().await;
        while let Some(line) = self.lines.recv().await {
            self.output.push(line);
        }
        std::mem::take(&mut self.output)
    }
}

/// The spans of one process: from each grant to the last instant at which its guard was valid.
fn spans(output: &[String]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for line in output {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["granted", token, at] => {
                let granted = at.parse().unwrap();
                spans.push(Span { token: token.parse().unwrap(), granted, valid: granted });
            }
            ["valid", token, at] => {
                let last = spans.last_mut().unwrap();
                assert_eq!(last.token.to_string(), *token);
                last.valid = at.parse().unwrap();
            }
            _ => {}
        }
    }
    spans
}

fn judge(outputs: &[Vec<String>]) -> usize {
    let mut all: Vec<Span> = outputs.iter().flat_map(|output| spans(output)).collect();
    all.sort_by_key(|span| span.token);
    for pair in all.windows(2) {
        let (earlier, later) = (&pair[0], &pair[1]);
        assert!(earlier.token < later.token, "one token twice: {earlier:?} {later:?}");
        assert!(earlier.valid < later.granted, "two valid guards at once: {earlier:?} {later:?}");
    }
    let mut written: Vec<(u64, u64)> = Vec::new();
    for line in outputs.iter().flatten() {
        if let ["written", token, version] = line.split(' ').collect::<Vec<_>>().as_slice() {
            written.push((version.parse().unwrap(), token.parse().unwrap()));
        }
    }
    written.sort_unstable();
    for pair in written.windows(2) {
        assert!(pair[0].1 <= pair[1].1, "an older holder wrote after a newer one: {pair:?}");
    }
    all.len()
}

async fn start(servers: usize) -> (LentEnsemble, Proxies, Vec<Contender>) {
    let ensemble = Ensemble::builder().servers(servers).tick(TICK).lend().await.unwrap();
    ensemble
        .raw()
        .await
        .unwrap()
        .create("/register", b"0", lockkeeper_tests::CreateMode::Persistent)
        .await
        .unwrap();
    let proxies = Proxies::start(&ensemble).await.unwrap();
    let mut contenders: Vec<Contender> =
        SESSIONS.iter().map(|sessions| Contender::start(&proxies.connect_string(), *sessions)).collect();
    for contender in &mut contenders {
        contender.granted().await;
    }
    (ensemble, proxies, contenders)
}

/// After the faults every contender is granted the lock again; then all stop, the oracle judges, and no node
/// is left.
async fn finish(ensemble: &Ensemble, mut contenders: Vec<Contender>, mut outputs: Vec<Vec<String>>) {
    for contender in &mut contenders {
        contender.drain();
        contender.granted().await;
    }
    for contender in &mut contenders {
        outputs.push(contender.stop().await);
    }
    let grants = judge(&outputs);
    assert!(grants > 20, "only {grants} grants: nothing was tested");
    no_node_is_left(ensemble, "/locks/lock").await;
}

#[tokio::test]
async fn never_two_holders_when_processes_are_killed() {
    let (ensemble, proxies, mut contenders) = start(1).await;
    let mut outputs = Vec::new();
    for round in 0..6 {
        let victim = &mut contenders[round % 4];
        victim.drain();
        // Often in the middle of a hold.
        victim.granted().await;
        victim.child.kill().await.unwrap();
        outputs.push(victim.stop().await);
        *victim = Contender::start(&proxies.connect_string(), SESSIONS[round % 4]);
        victim.granted().await;
    }
    finish(&ensemble, contenders, outputs).await;
}

#[tokio::test]
async fn never_two_holders_when_a_holder_is_paused_for_longer_than_its_session() {
    let (ensemble, _proxies, mut contenders) = start(1).await;
    for round in 0..4 {
        let (victim, other) = (round % 4, (round + 1) % 4);
        contenders[victim].drain();
        contenders[victim].granted().await;
        contenders[victim].signal(Signal::STOP);
        // Another contender was granted: if the paused process held the lock, its session has expired.
        contenders[other].drain();
        contenders[other].granted().await;
        contenders[other].granted().await;
        contenders[victim].signal(Signal::CONT);
        contenders[victim].drain();
        contenders[victim].granted().await;
    }
    finish(&ensemble, contenders, Vec::new()).await;
}

#[tokio::test]
async fn never_two_holders_when_links_are_cut_and_stall() {
    let (ensemble, proxies, mut contenders) = start(3).await;
    for round in 0..9 {
        match round % 3 {
            0 => proxies.cut().await.unwrap(),
            1 => {
                // The answers of one server stall until its clients have connected to another.
                let stalled = proxies.proxy(round % proxies_len());
                stalled.hold(Direction::ToClient);
                contenders[round % 4].drain();
                contenders[round % 4].granted().await;
                stalled.cut().await.unwrap();
                stalled.release(Direction::ToClient);
            }
            _ => {
                let stalled = proxies.proxy(round % proxies_len());
                stalled.hold(Direction::ToServer);
                contenders[round % 4].drain();
                contenders[round % 4].granted().await;
                stalled.cut().await.unwrap();
                stalled.release(Direction::ToServer);
            }
        }
        contenders[round % 4].drain();
        contenders[round % 4].granted().await;
    }
    finish(&ensemble, contenders, Vec::new()).await;
}

fn proxies_len() -> usize {
    3
}

#[tokio::test]
async fn never_two_holders_when_replies_are_lost() {
    let (ensemble, proxies, mut contenders) = start(1).await;
    for op in [OpCode::Create2, OpCode::GetChildren, OpCode::Multi, OpCode::Delete, OpCode::GetData] {
        for nth in 1..4 {
            let lost = proxies.on(Match::new().op(op).nth(nth)).drop_reply_and_cut();
            lost.triggered().await.unwrap();
            let unsent = proxies.on(Match::new().op(op).nth(nth)).cut_before_forward();
            unsent.triggered().await.unwrap();
        }
        contenders[0].drain();
        contenders[0].granted().await;
    }
    finish(&ensemble, contenders, Vec::new()).await;
}
