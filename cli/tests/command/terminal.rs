//! Terminals: util-linux's `script` has the other side.

use tokio::process::Command;

use crate::fixture::{Fixture, Running, UNTIL_A_SIGNAL};

/// The command line, in a terminal of its own.
fn in_a_terminal(fixture: &Fixture, line: &str) -> Running {
    let mut script = Command::new("script");
    fixture.reach(&mut script);
    // `script` has the line run by the user's shell, if there is one.
    script.env("SHELL", "/bin/sh");
    script.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    Running::start(&mut script)
}

fn lockkeeper(line: &str) -> String {
    format!("{} {line}", env!("CARGO_BIN_EXE_lockkeeper"))
}

/// A terminal ends its lines otherwise, and a shell begins them otherwise.
async fn until(running: &mut Running, expected: &str) {
    while !running.line().await.trim_end().ends_with(expected) {}
}

#[tokio::test]
async fn a_program_reads_the_terminal() {
    let fixture = Fixture::embedded().await;
    let line = lockkeeper("lock /tty/read -- sh -c 'echo ready; read word; echo got $word; exit 3'");
    let mut running = in_a_terminal(&fixture, &line);
    until(&mut running, "ready").await;
    running.write("hello\n").await;
    until(&mut running, "got hello").await;
    assert_eq!(running.ended().await.code, Some(3));
}

#[tokio::test]
async fn a_script_reads_the_terminal_after_the_program_did() {
    let fixture = Fixture::embedded().await;
    let command = lockkeeper("lock /tty/after -- sh -c 'read word; echo program $word'");
    let line = format!("{command}; read word; echo script $word");
    let mut running = in_a_terminal(&fixture, &line);
    running.write("one\ntwo\n").await;
    until(&mut running, "program one").await;
    until(&mut running, "script two").await;
    assert_eq!(running.ended().await.code, Some(0));
}

#[tokio::test]
async fn ctrl_c_reaches_the_program_before_and_after_it_has_the_terminal() {
    let fixture = Fixture::embedded().await;
    let trap = "trap \"echo INT; exit 8\" INT; echo ready;";
    for program in [UNTIL_A_SIGNAL, "while :; do read -t 0.1 word; done"] {
        // A shell that stays before the command gets the signal as well, and some end with it.
        let line = format!("exec {}", lockkeeper(&format!("lock /tty/int -- bash -c '{trap} {program}'")));
        let mut running = in_a_terminal(&fixture, &line);
        until(&mut running, "ready").await;
        if program.contains("read") {
            // The terminal shows it at once, so the signal may come before, while or after the program gets
            // the terminal.
            running.write("word\n").await;
            until(&mut running, "word").await;
        }
        running.write("\u{3}").await;
        until(&mut running, "INT").await;
        assert_eq!(running.ended().await.code, Some(8), "{program}");
    }
}

#[tokio::test]
async fn a_shell_stops_and_resumes_the_command_as_any_other_job() {
    // A job that is stopped loses its lock in the end, and this one is to be resumed before.
    let fixture = Fixture::embedded().await;
    let mut running = in_a_terminal(&fixture, "bash --norc -i");
    let line = lockkeeper("lock /tty/job -- sh -c 'echo re\"\"ady; read word; echo got $word'");
    running.write(&format!("PS1=; {line}\n")).await;
    until(&mut running, "ready").await;
    running.write("\u{1a}").await;
    while !running.line().await.contains("Stopped") {}
    running.write("fg\n").await;
    while !running.line().await.contains("got $word") {}
    running.write("hello\n").await;
    until(&mut running, "got hello").await;
    running.write("exit 0\n").await;
    assert_eq!(running.ended().await.code, Some(0));
}
