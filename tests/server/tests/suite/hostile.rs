//! Clients that send nonsense, too much, or take nothing: the server neither panics nor hangs nor grows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper_testserver::TestServer;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::raw::{Body, Conn, op};

const T: i32 = 10_000;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics on the server's own thread, where no test would see them.
fn watch_for_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() == Some("lockkeeper-testserver") {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        before(info);
    }));
}

/// Memory of this process in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn noise(rng: &mut StdRng) -> Vec<u8> {
    let length = rng.random_range(0..200);
    let mut bytes: Vec<u8> = (0..length).map(|_| rng.random()).collect();
    if rng.random_bool(0.8) {
        // A believable length, right or wrong.
        let announced: i32 = if rng.random_bool(0.7) { length } else { rng.random_range(-5..2_000_000) };
        bytes.splice(0..0, announced.to_be_bytes());
    }
    if rng.random_bool(0.5) {
        // An operation that exists.
        let op: i32 = rng.random_range(-12..108);
        for (byte, new) in bytes.iter_mut().skip(8).zip(op.to_be_bytes()) {
            *byte = new;
        }
    }
    bytes
}

#[tokio::test]
async fn noise_neither_panics_nor_hangs_nor_grows_the_server() {
    watch_for_panics();
    let server = TestServer::start().await.unwrap();
    let address = server.connect_string();
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut before = 0;
    for round in 0..2000 {
        if round == 200 {
            before = resident();
        }
        if rng.random_bool(0.3) {
            let mut client = TcpStream::connect(&address).await.unwrap();
            let _ = client.write_all(&noise(&mut rng)).await;
        } else {
            let mut client = Conn::new(&address, T).await;
            for _ in 0..rng.random_range(1..5) {
                let _ = client.send_raw(&noise(&mut rng)).await;
            }
            if rng.random_bool(0.5) {
                let _ = timeout(Duration::from_millis(1), client.frame()).await;
            }
        }
    }
    server.advance_clock(Duration::from_secs(60));
    server.wait_until(|machine| machine.client_count(0) == 0).await;
    assert_eq!(server.sessions(), []);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {grown} bytes");
    let mut client = Conn::new(&address, T).await;
    client.ok(op::EXISTS, &Body::watch("/", false)).await;
}

#[tokio::test]
async fn client_that_reads_nothing_is_not_read_from_either() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), T).await;
    client.ok(op::CREATE, &Body::create("/big", 0)).await;
    client.ok(op::SET_DATA, &Body::set("/big", &vec![7; 500_000], -1)).await;
    let before = resident();
    // Bytes after the fields of a record are ignored; here they fill the socket's buffers.
    let mut request = Body::watch("/big", false);
    request.0.extend([0; 4096]);
    let flood = async {
        for _ in 0..200_000 {
            client.send(op::GET_DATA, &request).await.unwrap();
        }
    };
    // 100 GB of replies were asked for. The flood stalls when the server stops reading.
    assert!(timeout(Duration::from_secs(2), flood).await.is_err());
    let grown = resident().saturating_sub(before);
    assert!(grown < 256 << 20, "grew by {grown} bytes");
    let mut other = Conn::new(&server.connect_string(), T).await;
    other.ok(op::EXISTS, &Body::watch("/big", false)).await;
}

#[tokio::test]
async fn multi_read_that_would_fill_the_memory_is_refused() {
    let server = TestServer::start().await.unwrap();
    let mut client = Conn::new(&server.connect_string(), T).await;
    client.ok(op::CREATE, &Body::create("/big", 0)).await;
    client.ok(op::SET_DATA, &Body::set("/big", &vec![7; 900_000], -1)).await;
    let reads: Vec<_> = (0..40_000).map(|_| (op::GET_DATA, Body::watch("/big", false))).collect();
    assert_eq!(client.call(op::MULTI_READ, &Body::multi(&reads)).await.unwrap().err, -5);
    let reads: Vec<_> = (0..4).map(|_| (op::GET_DATA, Body::watch("/big", false))).collect();
    client.ok(op::MULTI_READ, &Body::multi(&reads)).await;
}
