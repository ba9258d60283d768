//! The spans and the events.

use lockkeeper::Mutex;
use lockkeeper::config::Acl;
use lockkeeper_tests::{Timing, eventually};
use tracing::{Instrument, info_span};

use crate::seen::Seen;
use crate::{builder, connected, server};

#[tokio::test]
async fn a_hold_is_a_span_with_its_path_and_token() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let session = format!("{:#x}", server.sessions()[0]);
    let mutex = Mutex::new(&manager, "/locks/traced").unwrap();

    let first = mutex.acquire().await.unwrap();
    let waiter = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.unwrap() }.instrument(info_span!("caller"))
    });
    let waits = async || seen.spans("wait").into_iter().next();
    let wait = eventually("the second one waits", Timing::settle(), waits).await.unwrap();
    assert!(!seen.spans("hold")[0].is_closed);
    first.release().await.unwrap();
    let second = waiter.await.unwrap();

    for (name, span) in [("wait", &wait), ("hold", &seen.spans("hold")[1])] {
        assert_eq!(span.field("path"), second.path(), "{name}");
        assert_eq!(span.field("recipe"), "mutex", "{name}");
        assert_eq!(span.field("sequence"), "1", "{name}");
        assert_eq!(span.field("session"), session, "{name}");
        assert_eq!(span.field("epoch"), "1", "{name}");
    }
    let hold = &seen.spans("hold")[1];
    assert_eq!(hold.field("token"), second.fencing_token().to_string());
    assert_eq!(hold.parent.as_deref(), Some("caller"), "the call that acquired it is over");
    assert!(!hold.field("waited").is_empty());
    let acquired = &seen.spans("acquire")[1];
    assert_eq!((acquired.field("path"), acquired.field("outcome")), ("/locks/traced", "granted"));
    assert!(acquired.is_closed && !acquired.field("waited").is_empty());

    let release = &seen.spans("release")[0];
    let first = &seen.spans("hold")[0];
    assert!(release.is_closed && first.is_closed);
    assert_eq!(first.field("outcome"), "released");
    for field in ["path", "recipe", "sequence", "token", "session", "epoch"] {
        assert!(!release.field(field).is_empty() && release.field(field) == first.field(field), "{field}");
    }

    assert!(server.delete_node(second.path()));
    second.lost().await;
    drop(second);
    let hold = &seen.spans("hold")[1];
    assert!(hold.is_closed);
    assert_eq!(hold.field("outcome"), "lost");
    manager.shutdown().await.unwrap();
}

#[tokio::test]
async fn changes_of_the_connection_are_logged_with_their_reason() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let logged = async |message: &str, count: usize| {
        let events = async || Some(seen.events(message)).filter(|events| events.len() == count);
        eventually(format!("{count} times {message}"), Timing::settle(), events).await.unwrap()
    };

    server.drop_connections();
    logged("suspended", 1).await;
    let back = &logged("connected", 2).await[1];
    assert_eq!((back.level.as_str(), back.field("reason")), ("INFO", "the link is up again"));
    assert!(server.expire(server.sessions()[0]));
    let lost = &logged("session lost", 1).await[0];
    assert_eq!((lost.level.as_str(), lost.field("reason")), ("WARN", "the session expired"));
    assert_eq!(lost.field("epoch"), "1");
    let new = &logged("connected", 3).await[2];
    assert_eq!((new.field("epoch"), new.field("reason")), ("2", "a session was opened"));
    manager.shutdown().await.unwrap();
    assert_eq!(seen.events("closed").len(), 1);
}

#[tokio::test]
async fn no_secret_is_logged_and_no_warning_without_a_fault() {
    let (seen, _listening) = Seen::begin();
    let server = server().await;
    let builder = builder(&server).digest_auth("shop", "top-secret").acl(Acl::creator_only());
    let manager = builder.connect().await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/secret").unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    server.drop_connections();
    let guard = mutex.acquire().await.unwrap();
    guard.release().await.unwrap();
    manager.shutdown().await.unwrap();

    let all = seen.all();
    let ours: Vec<_> = all.iter().filter(|entry| entry.target.starts_with("lockkeeper")).collect();
    assert!(ours.len() > 10, "{ours:?}");
    for entry in &all {
        assert!(!format!("{entry:?}").contains("top-secret"), "{entry:?}");
    }
    // One session, whose link breaks once: at `info`, only its opening and its states are logged.
    let loud: Vec<_> = ours.iter().filter(|entry| entry.level == "WARN" || entry.level == "ERROR").collect();
    assert!(loud.is_empty(), "{loud:?}");
    let said: Vec<_> = ours.iter().filter(|entry| entry.level == "INFO").collect();
    assert!(said.len() <= 5, "{said:?}");
}
