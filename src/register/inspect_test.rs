//! What an inspection shows.

use lockkeeper_testserver::TestServer;

use super::{Change, Register};
use crate::znode::zxid::Zxid;
use crate::{ConnectionManager, CreateMode};

const PATH: &str = "/registers/inspected";

async fn register(server: &TestServer) -> Register {
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    Register::new(&manager, PATH).unwrap()
}

#[tokio::test]
async fn an_inspection_shows_the_last_write_and_the_sessions_that_write() {
    let server = TestServer::start().await.unwrap();
    let seen = register(&server).await;
    let nothing = seen.inspect().await.unwrap();
    assert_eq!((nothing.data(), nothing.zxid(), nothing.written()), (None, Zxid::ZERO, None));
    assert_eq!(nothing.to_string(), format!("{PATH}: does not exist"));

    let (one, two) = (register(&server).await, register(&server).await);
    let mut last = Zxid::ZERO;
    // The write that creates the node leaves no writer node.
    for writer in [&one, &one, &two] {
        let data = vec![b'x'; 3];
        last = writer.update(move |_| (Change::Write(data.clone()), ())).await.unwrap().1;
    }
    // A child that is no writer node.
    let other = format!("{PATH}/other");
    seen.manager().znodes().create(&other, "", CreateMode::Persistent).await.unwrap();
    let info = seen.inspect().await.unwrap();
    assert_eq!((info.data(), info.zxid()), (Some(&b"xxx"[..]), last));
    assert!(info.written().is_some());
    let sessions: Vec<i64> = info.writers().iter().map(|writer| writer.session()).collect();
    let [_, first, second] = server.sessions()[..] else { panic!("three sessions") };
    assert_eq!(sessions, [first, second], "the one that inspects writes nothing");
    let text = info.to_string();
    assert!(text.contains("3 bytes") && text.contains("2 writers") && text.lines().count() == 3, "{text}");

    one.manager().shutdown().await.unwrap();
    let info = seen.inspect().await.unwrap();
    assert_eq!(info.writers().iter().map(|writer| writer.session()).collect::<Vec<_>>(), [second]);
}
