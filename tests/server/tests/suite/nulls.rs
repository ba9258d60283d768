//! Strings, buffers and vectors of length −1. kazoo writes every empty string so.

use crate::protocol::on_both;
use crate::raw::{Body, Conn, Fields, op};

/// An entry of an access list: permissions, scheme, id.
type AclEntry = (i32, Option<&'static str>, Option<&'static str>);

const ANYONE: &[AclEntry] = &[(31, Some("world"), Some("anyone"))];
const AUTH: &[AclEntry] = &[(31, Some("auth"), None)];

fn acl(body: Body, entries: &[AclEntry]) -> Body {
    let body = body.int(entries.len() as i32);
    let text = |body: Body, text: &Option<&str>| body.bytes(text.map(str::as_bytes));
    entries.iter().fold(body, |body, (perms, scheme, id)| text(text(body.int(*perms), scheme), id))
}

fn create(entries: &[AclEntry], flags: i32) -> Body {
    acl(Body::new().str("/x").bytes(Some(b"")), entries).int(flags)
}

fn null() -> Body {
    Body::new().bytes(None)
}

fn auth(scheme: Option<&str>, credentials: Option<&[u8]>) -> Body {
    Body::new().int(0).bytes(scheme.map(str::as_bytes)).bytes(credentials)
}

/// A server's reaction to one request: its error, its number of transactions, whether the connection stays
/// open.
type Outcome = (i32, i64, bool);

const fn refused(error: i32) -> Outcome {
    (error, 0, true)
}

const fn written(error: i32) -> Outcome {
    (error, 1, true)
}

async fn newest(observer: &mut Conn) -> i64 {
    observer.call(op::PING, &Body::new()).await.unwrap().zxid
}

/// Sends each request over a connection of its own.
async fn compare(at: &str, identity: Option<&str>, requests: &[(&str, i32, Body, Outcome)]) {
    let mut observer = Conn::new(at, 4000).await;
    for (name, op, body, (error, taken, open)) in requests {
        let mut client = Conn::new(at, 4000).await;
        if let Some(identity) = identity {
            client.ok(op::AUTH, &auth(Some("digest"), Some(identity.as_bytes()))).await;
        }
        let before = newest(&mut observer).await;
        let reply = client.call(*op, body).await.unwrap();
        let after = newest(&mut observer).await;
        assert_eq!((reply.err, after - before), (*error, *taken), "{name}: error, transactions taken");
        if *open {
            client.ok(op::CLOSE, &Body::new()).await;
        } else {
            assert_eq!(reply.zxid, 0, "{name}");
            client.closed().await;
            // Its session would end by itself during a later request, which is a transaction.
            client.again(at).await.unwrap().ok(op::CLOSE, &Body::new()).await;
        }
    }
}

#[tokio::test]
async fn null_id_of_an_access_list_means_the_requester_and_else_nothing() {
    let line = |scheme| create(&[(31, scheme, None)], 1);
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        client.ok(op::CREATE, &Body::create("/base", 0)).await;
        let base = |entries| acl(Body::new().str("/base"), entries).int(-1);
        let twice = create(&[AUTH[0], AUTH[0]], 1);
        let again = create(&[AUTH[0], (31, Some("auth"), Some(""))], 1);
        let authenticated = [
            ("create", op::CREATE, create(AUTH, 1), written(0)),
            ("create2", op::CREATE2, create(AUTH, 1), written(0)),
            ("multi", op::MULTI, Body::multi(&[(op::CREATE, create(AUTH, 1))]), written(0)),
            ("the same entry twice", op::CREATE, twice, written(-5)),
            ("an entry with a null id and one with an empty id", op::CREATE, again, written(0)),
            ("setACL", op::SET_ACL, base(AUTH), written(0)),
            ("createContainer", op::CREATE_CONTAINER, create(AUTH, 4), written(0)),
        ];
        compare(at, Some("u:p"), &authenticated).await;
        let anonymous = [
            ("create", op::CREATE, create(AUTH, 1), written(-114)),
            ("setACL", op::SET_ACL, acl(Body::new().str("/zookeeper/quota"), AUTH).int(-1), written(-114)),
            ("an unknown scheme", op::CREATE, line(Some("nonsense")), written(-114)),
            ("a null scheme", op::CREATE, line(None), written(-114)),
            ("world", op::CREATE, line(Some("world")), written(-5)),
            ("digest", op::CREATE, line(Some("digest")), written(-5)),
            ("ip", op::CREATE, line(Some("ip")), written(-5)),
            ("ip in a multi", op::MULTI, Body::multi(&[(op::CREATE, line(Some("ip")))]), written(-5)),
            ("no list", op::CREATE, Body::new().str("/x").bytes(None).int(-1).int(1), written(-114)),
        ];
        compare(at, None, &anonymous).await;
        // Its session may have ended meanwhile.
        let mut client = Conn::new(at, 4000).await;
        client.ok(op::AUTH, &auth(Some("digest"), Some(b"u:p"))).await;
        let stored = client.ok(op::GET_ACL, &Body::new().str("/base")).await;
        let mut fields = Fields(&stored.body);
        assert_eq!((fields.int(), fields.int(), fields.str()), (1, 31, "digest".to_owned()));
        assert!(fields.str().starts_with("u:"));
    })
    .await;
}

#[tokio::test]
async fn failed_line_of_an_access_list_fails_one_operation_of_a_transaction() {
    on_both(async |at| {
        let mut client = Conn::new(at, 4000).await;
        let reply = client.ok(op::MULTI, &Body::multi(&[(op::CREATE, create(AUTH, 1))])).await;
        let mut fields = Fields(&reply.body);
        assert_eq!((fields.int(), fields.bool(), fields.int()), (-1, false, -114));
    })
    .await;
}

#[tokio::test]
async fn null_path_is_refused_by_each_operation_in_its_own_way() {
    let flag = || null().bool(true);
    let requests = [
        ("create", op::CREATE, acl(null().bytes(None), ANYONE).int(0), written(-5)),
        ("create2", op::CREATE2, acl(null().bytes(None), ANYONE).int(0), written(-5)),
        ("createContainer", op::CREATE_CONTAINER, acl(null().bytes(None), ANYONE).int(4), written(-5)),
        ("delete", op::DELETE, null().int(-1), written(-5)),
        ("setData", op::SET_DATA, null().bytes(None).int(-1), written(-8)),
        ("setData that ends early", op::SET_DATA, null().bytes(None), written(-5)),
        ("setACL", op::SET_ACL, acl(null(), ANYONE).int(-1), written(-8)),
        ("check", op::CHECK, null().int(-1), written(-8)),
        ("exists", op::EXISTS, flag(), refused(-5)),
        ("getData", op::GET_DATA, flag(), refused(-5)),
        ("getChildren", op::GET_CHILDREN, flag(), refused(-5)),
        ("getChildren2", op::GET_CHILDREN2, flag(), refused(-5)),
        ("getACL", op::GET_ACL, null(), refused(-5)),
        ("getAllChildrenNumber", op::GET_ALL_CHILDREN_NUMBER, null(), refused(-5)),
        ("getEphemerals", op::GET_EPHEMERALS, null(), refused(0)),
        ("sync", op::SYNC, null(), refused(0)),
        ("addWatch, persistent", op::ADD_WATCH, null().int(0), refused(0)),
        ("addWatch, recursive", op::ADD_WATCH, null().int(1), refused(0)),
        ("addWatch of no mode", op::ADD_WATCH, null().int(2), refused(-5)),
        ("removeWatches, children", op::REMOVE_WATCHES, null().int(1), refused(-121)),
        ("removeWatches, data", op::REMOVE_WATCHES, null().int(2), refused(-121)),
        ("removeWatches, any", op::REMOVE_WATCHES, null().int(3), refused(-121)),
        ("removeWatches of no kind", op::REMOVE_WATCHES, null().int(4), refused(-5)),
        ("checkWatches", op::CHECK_WATCHES, null().int(3), refused(-5)),
    ];
    on_both(async |at| {
        compare(at, None, &requests).await;
        let mut client = Conn::new(at, 4000).await;
        let echoed = client.ok(op::SYNC, &null()).await;
        assert_eq!(Fields(&echoed.body).bytes(), None, "sync echoes the null");
    })
    .await;
}

#[tokio::test]
async fn null_list_of_watches_is_refused() {
    let lists = |count: u8, nulls: u8| {
        let length = |index| if nulls >> index & 1 == 1 { -1 } else { 0 };
        (0..count).fold(Body::new().long(0), |body, index| body.int(length(index)))
    };
    let mut requests = vec![("no null", op::SET_WATCHES, lists(3, 0), refused(0))];
    requests.extend((1..8).map(|nulls| ("setWatches", op::SET_WATCHES, lists(3, nulls), refused(-5))));
    requests.extend((1..32).map(|nulls| ("setWatches2", op::SET_WATCHES2, lists(5, nulls), refused(-5))));
    let one_null = |at: i32| {
        (0..3).fold(
            Body::new().long(0),
            |body, list| if list == at { body.int(1).int(-1) } else { body.int(0) },
        )
    };
    requests.extend((0..3).map(|at| ("null path", op::SET_WATCHES, one_null(at), refused(-5))));
    on_both(async |at| compare(at, None, &requests).await).await;
}

#[tokio::test]
async fn null_credentials_end_the_connection_unless_the_scheme_needs_none() {
    const CLOSED: Outcome = (-115, 0, false);
    let requests = [
        ("null scheme", op::AUTH, auth(None, Some(b"u:p")), CLOSED),
        ("null scheme and data", op::AUTH, auth(None, None), CLOSED),
        ("digest", op::AUTH, auth(Some("digest"), None), CLOSED),
        ("empty digest", op::AUTH, auth(Some("digest"), Some(b"")), refused(0)),
        ("ip", op::AUTH, auth(Some("ip"), None), refused(0)),
        ("sasl", op::AUTH, auth(Some("sasl"), None), CLOSED),
    ];
    on_both(async |at| {
        compare(at, None, &requests).await;
        // A request for authentication that ends early is not answered.
        let mut client = Conn::new(at, 4000).await;
        client.send(op::AUTH, &Body::new().int(0).str("digest")).await.unwrap();
        client.closed().await;
    })
    .await;
}
