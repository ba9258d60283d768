//! Sessions and containers while no server serves, and the reports of an ensemble about itself.

use std::time::Duration;

use lockkeeper_testserver::{TestEnsemble, TestServer};
use tokio::time::{Instant, sleep, timeout};

use crate::raw::{Body, Conn, Fields, op};
use crate::real_server::{RealServer, four_letters, left_out};

// Long, so that a busy machine starts a real server in less.
const TICK: u32 = 500;
const TIMEOUT: i32 = 7_000;
const LONGER_TIMEOUT: i32 = 10_000;
const INTERVAL: Duration = Duration::from_secs(8);

/// Longer than a session timeout and the interval between two searches for containers.
const OUTAGE: Duration = Duration::from_secs(11);

/// Longer than anything here takes; a test that gets here hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// One server or three, real or ours.
enum Servers {
    Real(Vec<RealServer>),
    Ours(TestEnsemble),
}

impl Servers {
    async fn ours(count: usize) -> Self {
        let tick = Duration::from_millis(TICK.into());
        let builder = TestServer::builder().tick(tick).container_interval(INTERVAL).quorum(true);
        Self::Ours(builder.start_ensemble(count).await.unwrap())
    }

    async fn real(count: usize) -> Self {
        let look = format!("znode.container.checkIntervalMs={}", INTERVAL.as_millis());
        Self::Real(match count {
            1 => vec![RealServer::start(TICK, &[&look]).await],
            _ => RealServer::start_three(TICK, &[&look]).await,
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Real(_) => "real",
            Self::Ours(_) => "ours",
        }
    }

    fn at(&self, index: usize) -> String {
        match self {
            Self::Real(servers) => servers[index].address.clone(),
            Self::Ours(ensemble) => ensemble.server(index).unwrap().connect_string(),
        }
    }

    async fn stop(&mut self, index: usize) {
        match self {
            Self::Real(servers) => servers[index].kill(),
            Self::Ours(ensemble) => ensemble.server(index).unwrap().stop().await,
        }
    }

    async fn start(&mut self, index: usize) {
        match self {
            Self::Real(servers) => servers[index].launch(),
            Self::Ours(ensemble) => ensemble.server(index).unwrap().restart().await.unwrap(),
        }
    }

    /// The mode of a server by its own report, once it serves.
    async fn mode(&self, index: usize) -> String {
        let mode =
            |report: String| Some(report.lines().find_map(|line| line.strip_prefix("Mode: "))?.to_owned());
        answer(&self.at(index), "srvr", mode).await
    }
}

impl Servers {
    /// Waits until one of these leads and the other follows.
    async fn elected(&self, two: [usize; 2]) {
        let electing = async {
            loop {
                // A follower that has lost its leader may still say what it was.
                let mut modes = [self.mode(two[0]).await, self.mode(two[1]).await];
                modes.sort();
                if modes == ["follower", "leader"] {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, electing).await.unwrap_or_else(|_| panic!("{}: no leader", self.name()));
    }
}

/// Runs a check against real servers, where there are any, and against ours.
async fn on_both<F: AsyncFn(Servers)>(count: usize, check: F) {
    let real = async {
        if !left_out() {
            check(Servers::real(count).await).await;
        }
    };
    let ours = async { check(Servers::ours(count).await).await };
    tokio::join!(real, ours);
}

/// Asks until the answer is one that is waited for.
async fn answer<T>(address: &str, command: &str, wanted: impl Fn(String) -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = four_letters(address, command).await.and_then(&wanted) {
                return answer;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("{command} is not answered as expected"))
}

/// Waits until a node is deleted, and returns the time since `since`.
async fn deleted_after(observer: &mut Conn, path: &str, since: Instant) -> Duration {
    while observer.call(op::EXISTS, &Body::watch(path, false)).await.unwrap().err == 0 {
        assert!(since.elapsed() < PATIENCE, "{path} stays");
        sleep(Duration::from_millis(20)).await;
    }
    since.elapsed()
}

#[tokio::test]
async fn sessions_and_containers_do_not_age_while_the_server_is_stopped() {
    on_both(1, async |mut servers| {
        let name = servers.name();
        let mut silent = Conn::new(&servers.at(0), TIMEOUT).await;
        silent.ok(op::CREATE, &Body::create("/silent", 1)).await;
        let mut client = Conn::new(&servers.at(0), LONGER_TIMEOUT).await;
        client.ok(op::CREATE, &Body::create("/mine", 1)).await;
        client.ok(op::CREATE_CONTAINER, &Body::create("/used", 4)).await;
        client.ok(op::CREATE, &Body::create("/used/x", 0)).await;
        client.ok(op::DELETE, &Body::version("/used/x", -1)).await;
        servers.stop(0).await;
        client.closed().await;
        sleep(OUTAGE).await;

        let started = Instant::now();
        servers.start(0).await;
        assert_eq!(servers.mode(0).await, "standalone");
        let mut again = client.again(&servers.at(0)).await.unwrap();
        assert_eq!((again.session, again.timeout), (client.session, client.timeout), "{name}");
        for kept in ["/mine", "/silent", "/used"] {
            let found = again.call(op::EXISTS, &Body::watch(kept, false)).await.unwrap();
            assert_eq!(found.err, 0, "{name}: {kept} {:?} after the start", started.elapsed());
        }
        let silent = deleted_after(&mut again, "/silent", started).await;
        assert!(
            silent >= Duration::from_millis(TIMEOUT as u64),
            "{name}: the session ended after {silent:?}"
        );
        let used = deleted_after(&mut again, "/used", started).await;
        assert!(used >= INTERVAL, "{name}: the container was removed after {used:?}");
        again.ok(op::EXISTS, &Body::watch("/mine", false)).await;
    })
    .await;
}

#[tokio::test]
async fn ensemble_without_a_majority_serves_no_client_and_its_time_stops() {
    on_both(3, async |mut servers| {
        let name = servers.name();
        let mut silent = Conn::new(&servers.at(0), TIMEOUT).await;
        silent.ok(op::CREATE, &Body::create("/silent", 1)).await;
        let mut client = Conn::new(&servers.at(0), LONGER_TIMEOUT).await;
        servers.stop(1).await;
        servers.stop(2).await;
        client.closed().await;
        answer(&servers.at(0), "isro", |answer| (answer == "null").then_some(())).await;
        for report in ["srvr", "mntr"] {
            let answer = four_letters(&servers.at(0), report).await.unwrap();
            assert_eq!(answer, "This ZooKeeper instance is not currently serving requests\n");
        }
        assert_eq!(four_letters(&servers.at(0), "ruok").await.unwrap(), "imok");
        assert!(four_letters(&servers.at(0), "envi").await.unwrap().starts_with("Environment:\n"));
        assert!(client.again(&servers.at(0)).await.is_err(), "a session without a majority");
        sleep(OUTAGE).await;

        let started = Instant::now();
        servers.start(1).await;
        servers.elected([0, 1]).await;
        let mut again = client.again(&servers.at(1)).await.unwrap();
        assert_eq!(again.session, client.session);
        again.ok(op::SYNC, &Body::new().str("/")).await;
        again.ok(op::EXISTS, &Body::watch("/silent", false)).await;
        let silent = deleted_after(&mut again, "/silent", started).await;
        assert!(
            silent >= Duration::from_millis(TIMEOUT as u64),
            "{name}: the session ended after {silent:?}"
        );
        servers.start(2).await;
        assert_eq!(servers.mode(2).await, "follower");
    })
    .await;
}

#[tokio::test]
async fn end_of_the_leader_closes_the_connections_to_all_servers_and_that_of_a_follower_does_not() {
    on_both(3, async |mut servers| {
        let mut modes = Vec::new();
        for index in 0..3 {
            modes.push(servers.mode(index).await);
        }
        let leader = modes.iter().position(|mode| mode == "leader").unwrap();
        let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
        assert_eq!([modes[follower].as_str(), modes[other].as_str()], ["follower", "follower"]);
        let mut client = Conn::new(&servers.at(other), LONGER_TIMEOUT).await;
        client.ok(op::CREATE, &Body::create("/mine", 1)).await;
        servers.stop(follower).await;
        client.ok(op::SET_DATA, &Body::set("/mine", b"served by two", -1)).await;
        servers.start(follower).await;
        servers.mode(follower).await;
        servers.stop(leader).await;
        client.closed().await;
        servers.elected([follower, other]).await;
        let mut again = client.again(&servers.at(follower)).await.unwrap();
        assert_eq!(again.session, client.session);
        again.ok(op::SET_DATA, &Body::set("/mine", b"served by the next leader", -1)).await;
    })
    .await;
}

/// Data and metadata of `/zookeeper/config`, without the ports and the time, which no two servers share.
async fn config(at: &str) -> String {
    let mut client = Conn::new(at, 4_000).await;
    let reply = client.ok(op::GET_DATA, &Body::watch("/zookeeper/config", false)).await;
    let mut fields = Fields(&reply.body);
    let data = String::from_utf8(fields.bytes().unwrap().to_vec()).unwrap();
    let own_port = at.rsplit(':').next().unwrap();
    let is_listed = data.contains(&format!(";127.0.0.1:{own_port}\n"));
    let is_port = |part: &str| part.len() > 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let hide = |line: &str| {
        let parts = line.split_inclusive([':', ';']).map(|part| {
            let bare = part.trim_end_matches([':', ';']);
            if is_port(bare) { part.replace(bare, "port") } else { part.to_owned() }
        });
        parts.collect::<String>()
    };
    let data: Vec<String> = data.split('\n').map(hide).collect();
    let (czxid, mzxid, ctime, mtime) = (fields.long(), fields.long(), fields.long(), fields.long());
    let versions = [fields.int(), fields.int(), fields.int()];
    let rest = (fields.long(), fields.int() > 0, fields.int(), fields.long());
    format!(
        "{data:?} lists itself: {is_listed}, created {czxid} {ctime}, set {mzxid} {}, {versions:?} {rest:?}",
        mtime > 0
    )
}

#[tokio::test]
async fn ensemble_lists_its_servers_and_a_single_server_does_not() {
    for count in [1, 3] {
        let answers = async |servers: Servers| {
            let mut lines = Vec::new();
            for index in 0..count {
                lines.push(config(&servers.at(index)).await);
            }
            lines
        };
        let ours = answers(Servers::ours(count).await).await;
        println!("{ours:#?}");
        assert!(ours[0].contains(if count == 1 { "[0, 0, -1]" } else { "[-1, 0, -1]" }), "{ours:#?}");
        if !left_out() {
            assert_eq!(answers(Servers::real(count).await).await, ours);
        }
    }
}
