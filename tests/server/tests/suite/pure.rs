//! The machine without sockets: what simulations rely on.

use lockkeeper_testserver::machine::{ClientId, Machine, Mode, Output, Settings};
use lockkeeper_testserver::protocol::{ConnectRequest, Create, CreateOp, ReadOp, Reply, Request, WriteOp};
use lockkeeper_testserver::tree::{Acl, Identity, Permissions};
use proptest::prelude::*;

fn create(path: &str, flags: i32) -> Request {
    let acl = vec![Acl::new(Permissions::ALL, Identity::anyone())];
    let (op, path) = (CreateOp::Create, path.to_owned());
    Request::Write(WriteOp::Create(Create { op, path, data: None, acl, flags, ttl: -1 }))
}

fn join(machine: &mut Machine, timeout: i32, now: i64) -> ClientId {
    let client = machine.open(0, "10.0.0.1");
    machine.connect(client, ConnectRequest { timeout, ..ConnectRequest::default() }, now);
    client
}

/// One of the things that can happen to a machine.
#[derive(Debug, Clone)]
enum Happening {
    Ask(usize, Request),
    Pass(i64),
    Lose(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let path = prop::sample::select(vec!["/a", "/a/b", "/a/c-", "/d"]);
    let request = (path, 0..7).prop_map(|(path, kind)| match kind {
        0..3 => create(path, kind),
        3 => create(path, 3),
        4 => Request::Write(WriteOp::Delete { path: path.to_owned(), version: -1 }),
        5 => Request::Exists { path: path.to_owned(), watch: true },
        _ => Request::MultiRead(vec![ReadOp::Children(path.to_owned())]),
    });
    prop_oneof![
        6 => (0..3_usize, request).prop_map(|(who, request)| Happening::Ask(who, request)),
        2 => (0..400_i64).prop_map(Happening::Pass),
        1 => (0..3_usize).prop_map(Happening::Lose),
    ]
}

fn play(happenings: &[Happening]) -> Vec<Output> {
    let mut machine = Machine::new(Settings::default(), 0);
    let mut now = 0;
    let mut clients: Vec<_> = (0..3).map(|_| join(&mut machine, 500, now)).collect();
    let mut outputs = Vec::new();
    for happening in happenings {
        match happening {
            Happening::Ask(who, request) => {
                outputs.extend(machine.request(clients[*who], 1, request.clone(), now))
            }
            Happening::Pass(by) => {
                now += by;
                outputs.extend(machine.advance(now));
                assert!(machine.next_deadline() > now);
            }
            Happening::Lose(who) => {
                machine.disconnect(clients[*who]);
                clients[*who] = join(&mut machine, 500, now);
            }
        }
    }
    outputs
}

proptest! {
    #[test]
    fn same_happenings_at_the_same_times_give_the_same_outputs(
        happenings in prop::collection::vec(happening(), 0..60),
    ) {
        prop_assert_eq!(play(&happenings), play(&happenings));
    }

    #[test]
    fn no_session_outlives_its_timeout_by_more_than_a_tick_nor_ends_before(
        timeout in 200..40_000_i32, start in 0..1000_i64,
    ) {
        let mut machine = Machine::new(Settings::default(), start);
        join(&mut machine, timeout, start);
        machine.advance(start + i64::from(timeout));
        prop_assert_eq!(machine.sessions().len(), 1);
        machine.advance(start + i64::from(timeout) + 100);
        prop_assert_eq!(machine.sessions().len(), 0);
    }
}

#[test]
fn expired_session_takes_its_nodes_and_the_event_tells_others() {
    let mut machine = Machine::new(Settings::default(), 0);
    let (owner, watcher) = (join(&mut machine, 500, 0), join(&mut machine, 5000, 0));
    machine.request(owner, 1, create("/lock", 1), 10);
    machine.request(watcher, 1, Request::Exists { path: "/lock".into(), watch: true }, 20);
    let outputs = machine.advance(600);
    let [Output::Event { client, event, .. }, Output::Close { client: closed }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_eq!((*client, event.path.as_str(), *closed), (watcher, "/lock", owner));
}

#[test]
fn no_time_passes_while_too_few_servers_run() {
    let settings = Settings { servers: 3, quorum: true, container_interval: 1_000, ..Settings::default() };
    let mut machine = Machine::new(settings, 0);
    let client = join(&mut machine, 500, 0);
    assert_eq!(machine.stop(1, 100), []);
    assert_eq!(machine.stop(2, 100), [Output::Close { client }]);
    machine.disconnect(client);
    assert_eq!((machine.advance(10_000), machine.next_deadline()), (vec![], i64::MAX));
    let refused = machine.open(0, "10.0.0.1");
    assert_eq!(
        machine.connect(refused, ConnectRequest::default(), 10_000),
        [Output::Close { client: refused }]
    );
    machine.disconnect(refused);
    machine.start(2, 20_000);
    let modes = [0, 1, 2].map(|server| machine.mode(server));
    assert_eq!(modes, [Mode::Follower, Mode::Stopped, Mode::Leader]);
    machine.advance(20_500);
    assert_eq!(machine.sessions().len(), 1, "the session has its whole timeout anew");
    machine.advance(20_600);
    assert_eq!(machine.sessions(), []);
}

#[test]
fn requests_to_a_copied_machine_do_not_change_the_original() {
    let mut machine = Machine::new(Settings::default(), 0);
    let client = join(&mut machine, 5000, 0);
    let mut copy = machine.clone();
    copy.request(client, 1, create("/a", 0), 1);
    let outputs = machine.request(client, 1, Request::Exists { path: "/a".into(), watch: false }, 1);
    assert!(matches!(outputs.as_slice(), [Output::Reply { result: Err(_), .. }]));
    let outputs = copy.request(client, 2, Request::Exists { path: "/a".into(), watch: false }, 1);
    assert!(matches!(outputs.as_slice(), [Output::Reply { result: Ok(Reply::Stat(_)), .. }]));
}

#[test]
fn a_session_that_only_reads_at_a_follower_of_keeper_ends_unless_it_pings() {
    for like_clickhouse in [false, true] {
        let mut machine = Machine::new(Settings { servers: 2, like_clickhouse, ..Settings::default() }, 0);
        let [at_leader, reads, pings] = [0, 1, 1].map(|server| {
            let client = machine.open(server, "10.0.0.1");
            machine.connect(client, ConnectRequest { timeout: 500, ..ConnectRequest::default() }, 0);
            client
        });
        let [leaders, reading, pinging] = [at_leader, reads, pings].map(|it| machine.session_of(it).unwrap());
        let read = || Request::Exists { path: "/".into(), watch: false };
        machine.request(at_leader, 1, read(), 400);
        machine.request(reads, 1, read(), 400);
        machine.request(pings, 1, Request::Ping, 400);
        machine.advance(700);
        let left = if like_clickhouse { vec![leaders, pinging] } else { vec![leaders, reading, pinging] };
        assert_eq!(machine.sessions(), left);
    }
}
