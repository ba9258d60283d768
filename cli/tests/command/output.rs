//! A reader that closes the output.

use std::process::{Output, Stdio};

use lockkeeper_tests::Timing;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::fixture::Fixture;

/// The write end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // A process that another test starts has the reader until its program begins. `poll` says
    // of itself that there is none.
    poll(&mut [PollFd::new(&writer, PollFlags::empty())], None).unwrap();
    writer.into()
}

async fn wait(child: Child) -> Output {
    timeout(Timing::settle(), child.wait_with_output()).await.expect("an end").unwrap()
}

#[tokio::test]
async fn a_closed_output_ends_the_command_as_sigpipe_would_and_without_a_message() {
    let fixture = Fixture::embedded().await;
    for arguments in [&["tree", "/"][..], &["doctor"], &["completions", "bash"]] {
        let mut command = fixture.command(arguments);
        let output = wait(command.stdout(closed_pipe()).stderr(Stdio::piped()).spawn().unwrap()).await;
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), messages.as_str()), (Some(128 + 13), ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_closed_standard_error_does_not_end_the_program() {
    let fixture = Fixture::embedded().await;
    let script = "echo ready; exec sleep 1000";
    let mut command = fixture.command(["lock", "/output/a", "--", "sh", "-c", script]);
    let mut running =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(closed_pipe()).spawn().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap()).lines();
    assert_eq!(output.next_line().await.unwrap().as_deref(), Some("ready"));
    // The command has something to say about it.
    assert_eq!(fixture.ended(["revoke", "/output/a"]).await.code, Some(0));
    assert_eq!(wait(running).await.status.code(), Some(128 + 15));
}
