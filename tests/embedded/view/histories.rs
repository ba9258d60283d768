//! Random histories, with connections that break and sessions that expire.

use futures::future::join_all;
use lockkeeper::TreeView;
use lockkeeper::znodes::CreateMode;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::witness::{Witness, tree_of};
use super::{ROOT, client, newest_session, soon};
use crate::server_fixture::ServerFixture;

const SEEDS: u64 = 8;

#[tokio::test]
async fn no_history_with_faults_hides_a_change_or_tells_one_twice() {
    join_all((0..SEEDS).map(history)).await;
}

async fn history(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let server_fixture = ServerFixture::start().await.unwrap();
    let view = TreeView::new(&client(&server_fixture).await, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let (mut eager, mut lazy) = (Witness::new(view.changes()), Witness::new(view.changes()));
    let znodes = server_fixture.rival.znodes();
    for step in 0..150 {
        let path = match rng.random_range(0..12) {
            0 => ROOT.to_owned(),
            number @ 1..4 => format!("{ROOT}/{number}"),
            number => format!("{ROOT}/{}/{}", number % 3 + 1, number),
        };
        // Most writes meet a node that exists, or does not, or has children; and the rival's link breaks
        // as well.
        let _ = match rng.random_range(0..8) {
            0..4 => znodes.create(path, step.to_string(), CreateMode::Persistent).await.map(|_| ()),
            4..6 => znodes.write(path, step.to_string(), lockkeeper::znodes::Version::Any).await.map(|_| ()),
            _ => znodes.delete(path).await.map(|_| ()),
        };
        match rng.random_range(0..40) {
            0 => server_fixture.server.drop_connections(),
            1 => drop(server_fixture.server.expire(newest_session(&server_fixture))),
            2..6 => {
                soon("a sync", view.sync()).await;
                eager.read();
                server_fixture.server.inspect(|machine| {
                    assert_eq!(eager.copy(), &tree_of(machine, ROOT, 9), "seed {seed}, step {step}");
                });
            }
            6..12 => eager.read(),
            _ => {}
        }
    }
    soon("a sync", view.sync()).await;
    eager.read();
    lazy.read();
    server_fixture.server.inspect(|machine| {
        assert_eq!(eager.copy(), &tree_of(machine, ROOT, 9), "seed {seed}");
        assert_eq!(lazy.copy(), eager.copy(), "seed {seed}");
    });
}
