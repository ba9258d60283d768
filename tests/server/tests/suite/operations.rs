//! Each operation by its name, once, on this server and on Debian's. Random comparisons cover their
//! combinations.

use lockkeeper_testserver::TestServer;

use crate::protocol::on_both;
use crate::raw::{Body, Conn, Fields, Reply, op};

const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;
const BAD_VERSION: i32 = -103;
const NODE_EXISTS: i32 = -110;
const NO_WATCHER: i32 = -121;

fn strings(reply: &Reply) -> Vec<String> {
    Fields(&reply.body).strs()
}

/// The metadata at the end of a reply: versions of data, children and list, owner, length, children.
fn stat(reply: &Reply) -> (i32, i32, i32, i64, i32, i32) {
    let mut fields = Fields(&reply.body[reply.body.len() - 68..]);
    fields.take(32);
    let versions = (fields.int(), fields.int(), fields.int());
    (versions.0, versions.1, versions.2, fields.long(), fields.int(), fields.int())
}

#[tokio::test]
async fn create_create2_container_and_ttl_make_what_they_say() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        assert_eq!(client.ok(op::CREATE, &Body::create("/p", 0)).await.path(), "/p");
        assert_eq!(client.call(op::CREATE, &Body::create("/p", 0)).await.unwrap().err, NODE_EXISTS);
        assert_eq!(client.call(op::CREATE, &Body::create("/none/x", 0)).await.unwrap().err, NO_NODE);
        let made = client.ok(op::CREATE2, &Body::create("/p/e", 1)).await;
        assert_eq!((made.path().as_str(), stat(&made).3), ("/p/e", client.session));
        assert_eq!(client.ok(op::CREATE, &Body::create("/p/s-", 2)).await.path(), "/p/s-0000000001");
        let made = client.ok(op::CREATE2, &Body::create("/p/s-", 3)).await;
        assert_eq!((made.path().as_str(), stat(&made).3), ("/p/s-0000000002", client.session));
        let made = client.ok(op::CREATE_CONTAINER, &Body::create("/c", 4)).await;
        assert_eq!((made.path().as_str(), stat(&made).3), ("/c", 0));
        let made = client.ok(op::CREATE_TTL, &Body::create("/t", 5).long(100_000)).await;
        assert_eq!((made.path().as_str(), stat(&made).3), ("/t", 0));
        // The number is the parent's count of changes to its children.
        assert_eq!(stat(&client.ok(op::EXISTS, &Body::watch("/p", false)).await), (0, 3, 0, 0, 0, 3));
    })
    .await;
}

#[tokio::test]
async fn reads_and_writes_tell_data_versions_and_children() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        client.ok(op::CREATE, &Body::create("/a", 0)).await;
        client.ok(op::CREATE, &Body::create("/a/b", 0)).await;
        assert_eq!(stat(&client.ok(op::SET_DATA, &Body::set("/a", b"new", 0)).await), (1, 1, 0, 0, 3, 1));
        assert_eq!(client.call(op::SET_DATA, &Body::set("/a", b"x", 0)).await.unwrap().err, BAD_VERSION);
        let read = client.ok(op::GET_DATA, &Body::watch("/a", false)).await;
        assert_eq!((Fields(&read.body).bytes(), stat(&read).0), (Some(&b"new"[..]), 1));
        assert_eq!(strings(&client.ok(op::GET_CHILDREN, &Body::watch("/a", false)).await), ["b"]);
        let listed = client.ok(op::GET_CHILDREN2, &Body::watch("/a", false)).await;
        assert_eq!((strings(&listed), stat(&listed).5), (vec!["b".to_owned()], 1));
        let count = client.ok(op::GET_ALL_CHILDREN_NUMBER, &Body::new().str("/a")).await;
        assert_eq!(Fields(&count.body).int(), 1);
        assert_eq!(client.ok(op::SYNC, &Body::new().str("/a")).await.path(), "/a");
        client.ok(op::CREATE, &Body::create("/a/mine", 1)).await;
        assert_eq!(strings(&client.ok(op::GET_EPHEMERALS, &Body::new().str("/a")).await), ["/a/mine"]);
        assert_eq!(client.call(op::DELETE, &Body::version("/a/b", 7)).await.unwrap().err, BAD_VERSION);
        client.ok(op::DELETE, &Body::version("/a/b", 0)).await;
        assert_eq!(client.call(op::EXISTS, &Body::watch("/a/b", false)).await.unwrap().err, NO_NODE);
    })
    .await;
}

#[tokio::test]
async fn multi_is_all_or_nothing_and_multi_read_tells_each() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        let both = [(op::CREATE, Body::create("/m", 0)), (op::CHECK, Body::version("/m", 0))];
        client.ok(op::MULTI, &Body::multi(&both)).await;
        let failing = [(op::DELETE, Body::version("/m", -1)), (op::CHECK, Body::version("/none", 0))];
        let reply = client.ok(op::MULTI, &Body::multi(&failing)).await;
        let mut fields = Fields(&reply.body);
        let errors = [0; 2].map(|_| (fields.int(), fields.bool(), fields.int(), fields.int()));
        assert_eq!(errors, [(-1, false, 0, 0), (-1, false, NO_NODE, NO_NODE)]);
        client.ok(op::EXISTS, &Body::watch("/m", false)).await;
        let reads =
            [(op::GET_CHILDREN, Body::watch("/m", false)), (op::GET_DATA, Body::watch("/none", false))];
        let reply = client.ok(op::MULTI_READ, &Body::multi(&reads)).await;
        let mut fields = Fields(&reply.body);
        assert_eq!(
            (fields.int(), fields.bool(), fields.int(), fields.strs()),
            (op::GET_CHILDREN, false, 0, vec![])
        );
        assert_eq!((fields.int(), fields.bool(), fields.int(), fields.int()), (-1, false, NO_NODE, NO_NODE));
    })
    .await;
}

#[tokio::test]
async fn auth_who_am_i_and_access_lists_are_enforced() {
    on_both(async |at| {
        let mut owner = Conn::new(at, 4000).await;
        let mut foreign = Conn::new(at, 4000).await;
        owner.ok(op::AUTH, &Body::new().int(0).str("digest").bytes(Some(b"u:p"))).await;
        let who = owner.ok(op::WHO_AM_I, &Body::new()).await;
        let mut fields = Fields(&who.body);
        let mut who: Vec<_> = (0..fields.int()).map(|_| (fields.str(), fields.str())).collect();
        who.sort();
        assert_eq!(who, [("digest", "u"), ("ip", "127.0.0.1")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        owner.ok(op::CREATE, &Body::create("/mine", 0)).await;
        let list = Body::new().str("/mine").acl(&[(31, "auth", "")]).int(0);
        assert_eq!(stat(&owner.ok(op::SET_ACL, &list).await).2, 1);
        let list = owner.ok(op::GET_ACL, &Body::new().str("/mine")).await;
        let mut fields = Fields(&list.body);
        assert_eq!((fields.int(), fields.int(), fields.str()), (1, 31, "digest".to_owned()));
        for (op, body) in [
            (op::GET_DATA, Body::watch("/mine", false)),
            (op::SET_DATA, Body::set("/mine", b"", -1)),
            (op::CREATE, Body::create("/mine/x", 0)),
            (op::GET_CHILDREN, Body::watch("/mine", false)),
            (op::SET_ACL, Body::new().str("/mine").acl(&[(31, "world", "anyone")]).int(-1)),
        ] {
            assert_eq!(foreign.call(op, &body).await.unwrap().err, NO_AUTH, "op {op}");
        }
        foreign.ok(op::EXISTS, &Body::watch("/mine", false)).await;
        owner.ok(op::CREATE, &Body::create("/mine/x", 0)).await;
    })
    .await;
}

#[tokio::test]
async fn watches_are_set_found_set_again_and_removed() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        let mut other = Conn::new(at, 4000).await;
        client.ok(op::CREATE, &Body::create("/w", 0)).await;
        // Persistent, and recursive.
        client.ok(op::ADD_WATCH, &Body::version("/w", 0)).await;
        client.ok(op::ADD_WATCH, &Body::version("/w/r", 1)).await;
        for (op, body) in [
            (op::SET_DATA, Body::set("/w", b"", -1)),
            (op::CREATE, Body::create("/w/r", 0)),
            (op::CREATE, Body::create("/w/r/x", 0)),
            (op::DELETE, Body::version("/w/r/x", -1)),
        ] {
            other.ok(op, &body).await;
        }
        let events = [(3, "/w"), (1, "/w/r"), (4, "/w"), (1, "/w/r/x"), (2, "/w/r/x")];
        assert_eq!(client.drain().await.unwrap(), events.map(|(kind, path)| (kind, path.to_owned())));
        // One-shot ones: found, removed, found no more.
        client.ok(op::GET_DATA, &Body::watch("/w/r", true)).await;
        client.ok(op::CHECK_WATCHES, &Body::version("/w/r", 2)).await;
        client.ok(op::REMOVE_WATCHES, &Body::version("/w/r", 2)).await;
        assert_eq!(client.call(op::CHECK_WATCHES, &Body::version("/w/r", 2)).await.unwrap().err, NO_WATCHER);
        client.drain().await.unwrap();
        // Set again after a reconnect: missed events arrive at once.
        let seen = client.last_zxid;
        let mut again = client.again(at).await.unwrap();
        other.ok(op::DELETE, &Body::version("/w/r", -1)).await;
        let none = [""; 0];
        let watches = Body::new().long(seen).strs(&["/w/r"]).strs(&none).strs(&none);
        again.ok(op::SET_WATCHES, &watches).await;
        assert_eq!(again.drain().await.unwrap(), [(2, "/w/r".to_owned())]);
        let watches = Body::new().long(seen).strs(&none).strs(&none).strs(&none).strs(&["/w"]).strs(&none);
        again.ok(op::SET_WATCHES2, &watches).await;
        again.drain().await.unwrap();
        other.ok(op::SET_DATA, &Body::set("/w", b"1", -1)).await;
        assert_eq!(again.drain().await.unwrap(), [(3, "/w".to_owned())]);
    })
    .await;
}

#[tokio::test]
async fn ping_reconnect_and_close_keep_and_end_a_session() {
    on_both(async |at| {
        let mut client = Conn::new(at, 1000).await;
        assert_eq!(client.timeout, 1000);
        client.ok(op::PING, &Body::new()).await;
        client.ok(op::CREATE, &Body::create("/mine", 1)).await;
        let mut again = client.again(at).await.unwrap();
        assert_eq!((again.session, &again.password), (client.session, &client.password));
        again.ok(op::CLOSE, &Body::new()).await;
        again.closed().await;
        assert_eq!(client.again(at).await.unwrap().session, 0, "it is over");
        let mut other = Conn::new(at, 1000).await;
        assert_eq!(other.call(op::EXISTS, &Body::watch("/mine", false)).await.unwrap().err, NO_NODE);
    })
    .await;
}

#[tokio::test]
async fn connect_answers_the_read_only_flag_only_to_who_sent_it() {
    on_both(async |at| {
        for (flag, length) in [(None, 36), (Some(false), 37), (Some(true), 37)] {
            let mut client = Conn::new(at, 4000).await;
            let hello = Body::new().int(0).long(0).int(4000).long(0).bytes(Some(&[0; 16]));
            let hello = match flag {
                Some(flag) => hello.bool(flag),
                None => hello,
            };
            let answer = client.hello(at, &hello).await;
            assert_eq!(answer.len(), length, "{flag:?}");
            assert!(flag.is_none() || answer[36] == 0, "it can be written to");
        }
    })
    .await;
}

#[tokio::test]
async fn operations_not_for_clients_are_unimplemented_and_never_hang() {
    let server = TestServer::start().await.unwrap();
    // `createSession`, `deleteContainer`, `sasl`, `error`, and unused numbers.
    for unknown in [-10, 20, 102, -1, 23, 108, i32::MIN, i32::MAX] {
        let mut client = Conn::new(&server.connect_string(), 4000).await;
        assert_eq!(client.call(unknown, &Body::new()).await.unwrap().err, -6, "op {unknown}");
    }
}
