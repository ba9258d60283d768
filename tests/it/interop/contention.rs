//! Random contention of Java threads and Rust tasks on one path.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper_tests::{CreateMode, RawClient};
use parking_lot::Mutex as Shared;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Mutex as AsyncMutex;

use super::fixture::{Contender, Failure, Hold, InteropFixture, Outcome, chosen_seed};

/// Java or Rust.
type Language = Discriminant<Hold>;

/// The data that the lock protects, and the checks of exclusion.
struct Witness {
    inside: AtomicBool,
    register: String,
    /// The mutex covers single requests only, so it does not replace the lock under test.
    client: AsyncMutex<RawClient>,
    /// Token and language, in the order of the visits.
    grants: Shared<Vec<(u64, Language)>>,
}

impl Witness {
    /// Reads the register, yields, and writes it: a second holder meanwhile would lose one of the counts.
    async fn visit(&self, hold: &Hold, dawdle: usize) -> Outcome {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two holders at once");
        self.grants.lock().push((hold.token(), discriminant(hold)));
        let visits = self.visits().await?;
        for _ in 0..dawdle {
            self.client.lock().await.exists("/").await?;
        }
        let visits = (visits + 1).to_string();
        self.client.lock().await.set_data(&self.register, visits.as_bytes()).await?;
        assert!(self.inside.swap(false, Ordering::SeqCst), "two holders at once");
        Ok(())
    }

    async fn visits(&self) -> Result<usize, Failure> {
        let (visits, _) = self.client.lock().await.data(&self.register).await?;
        Ok(String::from_utf8(visits)?.parse()?)
    }
}

/// The number of contenders of each language, and of the acquires of each.
const CONTENDERS: usize = 3;
const VISITS: usize = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_random_contention_one_contender_holds_and_grants_follow_the_queue() -> Outcome {
    let seed = chosen_seed();

    let Some(fixture) = InteropFixture::at("/interop/random").await? else {
        return Ok(());
    };
    let register = "/interop-register".to_owned();
    fixture.oracle.lock().await.create(&register, b"0", CreateMode::Persistent).await?;
    let witness = Arc::new(Witness {
        inside: AtomicBool::new(false),
        register,
        client: AsyncMutex::new(fixture.ensemble.raw().await?),
        grants: Shared::new(Vec::new()),
    });
    let contenders =
        (0..CONTENDERS).flat_map(|number| [fixture.java(&format!("thread-{number}")), fixture.rust()]);
    let tasks = contenders.zip(0..).map(|(contender, number)| {
        let witness = Arc::clone(&witness);
        tokio::spawn(contend(contender, witness, StdRng::seed_from_u64(seed ^ number)))
    });
    // All contenders start together: else the faster language would finish before the other begins.
    let start = fixture.rust().acquire().await?;
    let tasks: Vec<_> = tasks.collect();
    fixture.queue_of(1 + tasks.len()).await?;
    start.release().await?;
    for outcome in try_join_all(tasks).await? {
        outcome?;
    }
    assert_eq!(witness.visits().await?, 2 * CONTENDERS * VISITS);
    let grants = witness.grants.lock().clone();
    assert!(grants.is_sorted_by(|(earlier, _), (later, _)| earlier < later), "a grant out of order");
    let handovers = grants.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert!(handovers > VISITS, "{handovers} between the languages: hardly any contention");
    fixture.queue_of(0).await?;
    Ok(())
}

async fn contend(contender: Contender, witness: Arc<Witness>, mut random: StdRng) -> Outcome {
    let mut visits = 0;
    while visits < VISITS {
        let hold = if visits > 0 && random.random_bool(0.3) {
            contender.acquire_timeout(Duration::from_millis(random.random_range(0..60))).await?
        } else {
            Some(contender.acquire().await?)
        };
        if let Some(hold) = hold {
            witness.visit(&hold, random.random_range(0..4)).await?;
            hold.release().await?;
            visits += 1;
        }
    }
    Ok(())
}
