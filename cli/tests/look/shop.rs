//! A shop at work, as the pictures of the documentation show it: services of several machines, some of which
//! wait, with the ages and notes that an engineer on call sees.

use std::any::Any;
use std::time::Duration;

use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Election, Inspection, Mutex, RwLock, Semaphore};
use lockkeeper_tests::{Timing, eventually};

use crate::fixture::Fixture;
use crate::picture;
use crate::screen::Terminal;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Some hours of work, of which the server thinks that they have passed.
struct Shop {
    fixture: Fixture,
    /// What is held and waited for.
    guards: Vec<Box<dyn Any>>,
}

impl Shop {
    async fn at_work() -> Self {
        let mut shop = Self { fixture: Fixture::patient().await, guards: Vec::new() };
        shop.server_clock_back(4 * 60 * MINUTE);
        let guards = shop.candidates().await;
        shop.guards.push(guards);
        shop.later(2 * 60 * MINUTE);
        let guards = shop.report().await;
        shop.guards.push(guards);
        shop.later(80 * MINUTE);
        let guards = shop.stock().await;
        shop.guards.push(guards);
        shop.later(31 * MINUTE);
        let guards = shop.workers().await;
        shop.guards.push(guards);
        let guards = shop.pool().await;
        shop.guards.push(guards);
        shop.later(9 * MINUTE);
        shop
    }

    fn server_clock_back(&self, by: Duration) {
        self.fixture.embedded.as_ref().unwrap().set_clock_back(by);
    }

    /// This long later.
    fn later(&self, by: Duration) {
        self.fixture.embedded.as_ref().unwrap().advance_clock(by);
    }

    /// A client whose session outlasts these hours.
    async fn client(&self) -> ConnectionManager {
        let builder = ConnectionManager::builder(&self.fixture.servers).session_timeout(DAY);
        builder.connect().await.unwrap()
    }

    async fn candidates(&self) -> Box<dyn Any> {
        let manager = self.client().await;
        let candidate = |id: &str| Election::new(&manager, "/shop/leaders/mailer", id).unwrap();
        let leads = candidate("web-1").campaign().await.unwrap();
        let other = candidate("web-2");
        let waiting = tokio::spawn(async move { other.campaign().await });
        let waits = async || {
            let seen = Inspection::of_path(&manager, "/shop/leaders/mailer").await.unwrap()?;
            (seen.waiters().count() == 1).then_some(())
        };
        eventually("a candidate that waits", Timing::event(), waits).await.unwrap();
        Box::new((leads, waiting))
    }

    async fn report(&self) -> Box<dyn Any> {
        let manager = self.client().await;
        let by = |who: &str| {
            let mutex = Mutex::new(&manager, "/shop/locks/nightly-report").unwrap();
            mutex.with_node_data(who.to_owned())
        };
        let holds = by("host=batch-1 pid=4711 ticket 512").acquire().await.unwrap();
        let waits = by("host=batch-2 pid=1207").enqueue().await.unwrap();
        let train = Mutex::new(&manager, "/shop/locks/列車-7").unwrap();
        let train = train.with_node_data("host=web-2 pid=88".to_owned()).acquire().await.unwrap();
        Box::new((holds, waits, train))
    }

    async fn stock(&self) -> Box<dyn Any> {
        let manager = self.client().await;
        let by = |who: &str| {
            let lock = RwLock::new(&manager, "/shop/locks/stock").unwrap();
            lock.with_node_data(who.to_owned())
        };
        let reads =
            (by("host=web-1 pid=93").read().await.unwrap(), by("host=web-2 pid=88").read().await.unwrap());
        let mut waits = Vec::new();
        for import in 1..4 {
            let writer = by(&format!("host=import-{import} pid=220{import} stocktaking"));
            waits.push(writer.enqueue_write().await.unwrap());
        }
        Box::new((reads, waits))
    }

    async fn workers(&self) -> Box<dyn Any> {
        let manager = self.client().await;
        for member in ["worker-1", "worker-2", "worker-3"] {
            let path = format!("/shop/workers/{member}");
            manager.znodes().create(&path, "", CreateMode::Ephemeral).await.unwrap();
        }
        Box::new(manager)
    }

    async fn pool(&self) -> Box<dyn Any> {
        let manager = self.client().await;
        let by = |who: &str| {
            let pool = Semaphore::new(&manager, "/shop/pools/convert", 3).unwrap();
            pool.with_node_data(who.to_owned())
        };
        let holds = by("host=web-1 pid=97 video 20481").acquire_many(2).await.unwrap();
        let other = by("host=web-3 pid=51 video 20490").acquire().await.unwrap();
        let waits = by("host=web-2 pid=64 video 20497").enqueue().await.unwrap();
        Box::new((holds, other, waits))
    }
}

#[tokio::test]
async fn a_shop_at_work_is_shown_with_its_notes_ages_and_waiters() {
    let shop = Shop::at_work().await;
    assert_eq!(shop.guards.len(), 5);
    let tree = Terminal::start(&shop.fixture, &["tree", "/shop"]);
    let shown = tree.shows(&["3 members", "semaphore 3/3", "ticket 512", "1 waiting"]).await;
    // The columns are below each other, whatever the width of a name.
    let column = |name: &str, cell: &str| {
        let line = shown.lines().find(|line| line.contains(name)).unwrap();
        line.split(cell).next().unwrap().chars().map(|c| if c > '\u{2fff}' { 2 } else { 1 }).sum::<usize>()
    };
    assert_eq!(column("列車-7", "mutex"), column("nightly-report", "mutex"), "{shown}");
    tree.picture("tree");
    assert_eq!(tree.ended().await, 0);

    let top = Terminal::start(&shop.fixture, &["top", "/shop", "--interval", "1s"]);
    top.resize(12);
    let held = if picture::is_wanted() { ">12s" } else { ">" };
    top.shows(&["5 locks, 6 waiting", "> /shop/locks/stock", "2h00m", "列車-7", held]).await;
    top.picture("top");
}
