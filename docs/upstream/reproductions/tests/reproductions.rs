//! Each test fails with zookeeper-client 0.11.2, and passes with the patch of the same number.

use std::process::Command;
use std::time::Duration;

use futures::future::join;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_client_reproductions::{Server, data, reply};

const CREATE2: i32 = 15;
const GET_DATA: i32 = 4;
/// For what must come, and else would be waited for without an end.
const LONG: Duration = Duration::from_secs(30);
/// Set in the process in which the first test runs itself again.
const CHILD: &str = "LOCKKEEPER_REPRODUCTION_CHILD";

/// 1. Before it reads the elements of a list, the client reserves memory for as many as the reply says: 48
///    GiB here.
/// If there is not so much, the process aborts.
#[tokio::test]
async fn a_count_that_is_greater_than_its_reply_is_an_error_and_no_abort() {
    if std::env::var_os(CHILD).is_none() {
        let mut command = Command::new("sh");
        // The same on a machine that has so much memory.
        command.args(["-c", "ulimit -v 8000000; exec \"$0\" --exact \"$1\""]);
        command.arg(std::env::current_exe().unwrap());
        command.arg("a_count_that_is_greater_than_its_reply_is_an_error_and_no_abort").env(CHILD, "");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        return;
    }
    let server = Server::start(|request| vec![reply(request, &i32::MAX.to_be_bytes())]);
    let client = Client::connect(&server.address).await.unwrap();
    timeout(LONG, client.list_children("/")).await.unwrap().unwrap_err();
}

/// 2. The client counts its requests for watches by path, and the key is a pointer into the newest request,
///    which ends
/// with its own reply. If that reply comes before the one to an earlier request, the key points to freed
/// memory, or to memory that has the reply now. The count is not found then, and the task of the session
/// panics.
#[tokio::test]
async fn replies_to_two_requests_for_a_watch_may_come_in_any_order() {
    let mut first = None;
    let server = Server::start(move |request| match first.take() {
        None => {
            first = Some(request.clone());
            Vec::new()
        }
        Some(first) => vec![data(request, b"second"), data(&first, b"first")],
    });
    let client = Client::connect(&server.address).await.unwrap();
    // So long that the reply takes the place of the request, and not of another buffer.
    let path = format!("/{}", "node".repeat(50));
    let both = join(client.get_and_watch_data(&path), client.get_and_watch_data(&path));
    let (one, other) = timeout(LONG, both).await.unwrap();
    assert_eq!(one.map(|(data, ..)| data), Ok(b"first".to_vec()));
    assert_eq!(other.map(|(data, ..)| data), Ok(b"second".to_vec()));
}

/// 3. A future that is dropped before its first poll has its request sent none the less: the node is created,
///    and its
/// creator does not know of it.
#[tokio::test(flavor = "current_thread")]
async fn a_future_that_is_dropped_before_its_request_is_written_sends_nothing() {
    let server = Server::start(|request| match request.operation {
        GET_DATA => vec![data(request, b"")],
        _ => Vec::new(),
    });
    let client = Client::connect(&server.address).await.unwrap();
    // The task of the session does not run between the two on this runtime.
    drop(client.create("/node", b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all())));
    timeout(LONG, client.get_data("/")).await.unwrap().unwrap();
    assert!(!server.asked().contains(&CREATE2), "{:?}", server.asked());
    assert_eq!(server.asked(), [GET_DATA]);
}
