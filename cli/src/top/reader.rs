//! Reads what is on the screen at each look, and of the rest a bounded part.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use lockkeeper::error::Refusal;
use lockkeeper::{ConnectionManager, Error, Inspection, ZnodePath};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::index::{Head, Index, Seen};
use super::options::TopOptions;
use super::queue::{Queue, is_semaphore, may_be_a_directory};
use super::row::{Held, Row};
use crate::inspect::print::named;
use crate::partial::partial_of;

/// How many directories are read at once.
const BATCH: usize = 64;

/// How many bytes of a node's data are read for a name.
const DATA_BYTES_MAX: usize = 1024;

/// What the screen shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The locks of the list that are on the screen.
    pub(super) visible: Vec<ZnodePath>,
    /// The lock whose table is on the screen, and the number of the opening.
    pub(super) page: Option<(ZnodePath, u64)>,
    /// Greater after each key: what is new on the screen is read at once.
    pub(super) keys: u64,
    /// Greater after each act of the user: all that is on the screen is read at once.
    pub(super) acts: u64,
}

/// What is known after a look.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) rows: Vec<Row>,
    /// What is not seen.
    pub(super) partial: Option<String>,
    /// The age of the oldest list. `None` before every directory was listed once.
    pub(super) age: Option<Duration>,
    /// The table of the wanted lock.
    pub(super) page: Option<(ZnodePath, Option<Inspection>)>,
}

#[derive(Debug)]
pub(super) struct Reader {
    manager: ConnectionManager,
    index: Index,
    nodes: usize,
    interval: Duration,
    background: usize,
    /// The opening whose table was read.
    opened: Option<(ZnodePath, u64)>,
    /// Whether every directory was listed once.
    is_complete: bool,
}

impl Reader {
    pub(super) fn new(manager: &ConnectionManager, root: ZnodePath, options: &TopOptions) -> Self {
        let TopOptions { nodes, interval, background, .. } = *options;
        let (manager, index) = (manager.clone(), Index::new(root, nodes, interval));
        Self { manager, index, nodes, interval, background, opened: None, is_complete: false }
    }

    /// Looks again and again: after each interval, and at what is new on the screen when the user moves on.
    pub(super) async fn run(
        mut self,
        mut wanted: watch::Receiver<Wanted>,
        looks: mpsc::Sender<Result<Look, Error>>,
    ) {
        let mut is_due = true;
        loop {
            let now = wanted.borrow_and_update().clone();
            let result = if self.is_complete {
                self.again(&now, is_due).await.transpose()
            } else {
                Some(self.first(&now, &looks).await)
            };
            if let Some(result) = result
                && looks.send(result).await.is_err()
            {
                return;
            }
            is_due = tokio::select! {
                biased;
                turned = wanted.wait_for(|wanted| (wanted.keys, wanted.acts) != (now.keys, now.acts)) => {
                    match turned {
                        Ok(wanted) => wanted.acts != now.acts,
                        Err(_) => return,
                    }
                }
                () = tokio::time::sleep(self.interval) => true,
            };
        }
    }

    /// Lists every directory.
    pub(super) async fn all(&mut self) -> Result<Look, Error> {
        self.look_at(&self.index.all()).await?;
        self.complete(None).await?;
        Ok(self.look(None))
    }

    /// Lists every directory once, and shows what is known meanwhile.
    async fn first(
        &mut self,
        wanted: &Wanted,
        looks: &mpsc::Sender<Result<Look, Error>>,
    ) -> Result<Look, Error> {
        self.complete(Some(looks)).await?;
        let page = self.page(wanted).await?;
        Ok(self.look(page))
    }

    /// Lists what was never listed, and what is found by it.
    async fn complete(&mut self, looks: Option<&mpsc::Sender<Result<Look, Error>>>) -> Result<(), Error> {
        loop {
            let unlisted = self.index.unlisted();
            if unlisted.is_empty() {
                self.is_complete = true;
                return Ok(());
            }
            for batch in unlisted.chunks(BATCH) {
                self.look_at(batch).await?;
                // Without room the screen has newer ones to show later.
                if let Some(room) = looks.and_then(|looks| looks.try_reserve().ok()) {
                    room.send(Ok(self.look(None)));
                }
            }
        }
    }

    /// Lists what is on the screen, the root, and some others. A look that is not due reads only what is new
    /// on the screen: `None` if nothing is.
    async fn again(&mut self, wanted: &Wanted, is_due: bool) -> Result<Option<Look>, Error> {
        let is_asked = |path: &&ZnodePath| is_due || !self.index.is_fresh(path, self.interval);
        let mut paths: Vec<ZnodePath> = wanted.visible.iter().filter(is_asked).cloned().collect();
        if is_due {
            paths.push(self.index.root().clone());
        } else if paths.is_empty() && (wanted.page.is_none() || wanted.page == self.opened) {
            return Ok(None);
        }
        let began = Instant::now();
        self.look_at(&paths).await?;
        if is_due {
            // What these lists have found is among them.
            self.look_at(&self.index.oldest(self.background, began)).await?;
        }
        let page = self.page(wanted).await?;
        Ok(Some(self.look(page)))
    }

    fn look(&self, page: Option<(ZnodePath, Option<Inspection>)>) -> Look {
        let partial = partial_of(self.index.is_partial(), self.index.unread(), self.nodes);
        Look { rows: self.index.rows(), partial, age: self.is_complete.then(|| self.index.age()), page }
    }

    async fn page(&mut self, wanted: &Wanted) -> Result<Option<(ZnodePath, Option<Inspection>)>, Error> {
        self.opened.clone_from(&wanted.page);
        let Some((path, _)) = &wanted.page else { return Ok(None) };
        Ok(Some((path.clone(), Inspection::of_path(&self.manager, path).await?)))
    }

    async fn look_at(&mut self, paths: &[ZnodePath]) -> Result<(), Error> {
        for batch in paths.chunks(BATCH) {
            let seen = join_all(batch.iter().map(|path| self.see(path))).await;
            for (seen, path) in seen.into_iter().zip(batch) {
                self.index.update(path, seen?);
            }
        }
        Ok(())
    }

    /// Lists a directory, and reads the node of the first holder if it is another one.
    async fn see(&self, path: &ZnodePath) -> Result<Seen, Error> {
        let children = match self.manager.znodes().children(path).await {
            Ok(None) => return Ok(Seen::Nothing),
            Ok(Some(children)) => children,
            Err(error) if is_refused(&error) => return Ok(Seen::Refused),
            Err(error) => return Err(error),
        };
        if path.is_root() {
            let checked = BTreeMap::new();
            return Ok(Seen::Listed { children, checked, lock: None });
        }
        let checked = self.checked(path, &children).await?;
        let queue = if is_semaphore(&children) {
            let [leases, locks] = ["leases", "locks"].map(|name| self.names(path, name));
            let (leases, locks) = futures::future::try_join(leases, locks).await?;
            Queue::of_semaphore(&leases, &locks)
        } else {
            let is_contender = |child: &&String| checked.get(*child) != Some(&true);
            Queue::of(&children.iter().filter(is_contender).cloned().collect::<Vec<_>>())
        };
        let Some(queue) = queue else { return Ok(Seen::Listed { children, checked, lock: None }) };
        let known = self.index.directory(path).and_then(|of| of.head());
        let head = match &queue.first {
            None => None,
            Some(first) => match known.filter(|known| known.node == *first) {
                Some(known) => Some(known.clone()),
                None => self.head(path, first).await?,
            },
        };
        Ok(Seen::Listed { children, checked, lock: Some((queue, head)) })
    }

    /// Which of the children with names of contenders, but without a unique part, are directories.
    async fn checked(&self, path: &ZnodePath, children: &[String]) -> Result<BTreeMap<String, bool>, Error> {
        let before = self.index.directory(path).map(|of| &of.checked);
        let mut checked = BTreeMap::new();
        for child in children.iter().filter(|child| may_be_a_directory(child)) {
            let is_directory = match (before.and_then(|before| before.get(child)), path.child(child)) {
                (Some(known), _) => *known,
                (None, Ok(node)) => match self.manager.znodes().read(&node).await {
                    Ok(found) => found.is_some_and(|(_, stat)| stat.is_directory()),
                    Err(error) if is_refused(&error) => false,
                    Err(error) => return Err(error),
                },
                (None, Err(_)) => false,
            };
            checked.insert(child.clone(), is_directory);
        }
        Ok(checked)
    }

    /// The children of a directory of a semaphore.
    async fn names(&self, path: &ZnodePath, name: &str) -> Result<Vec<String>, Error> {
        let Ok(path) = path.child(name) else { return Ok(Vec::new()) };
        match self.manager.znodes().children(&path).await {
            Ok(children) => Ok(children.unwrap_or_default()),
            Err(error) if is_refused(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The node of a holder. `None` if it does not exist any more.
    async fn head(&self, path: &ZnodePath, node: &str) -> Result<Option<Head>, Error> {
        let Ok(whole) = format!("{path}/{node}").parse::<ZnodePath>() else { return Ok(None) };
        let read = self.manager.znodes().read(&whole).await;
        let (name, since) = match read {
            Ok(None) => return Ok(None),
            Ok(Some((mut data, stat))) => {
                data.truncate(DATA_BYTES_MAX);
                let created = Duration::from_millis(stat.ctime.max(0).unsigned_abs());
                let since = SystemTime::UNIX_EPOCH.checked_add(created);
                (named(Some(&data), stat.ephemeral_owner), since)
            }
            Err(error) if is_refused(&error) => ("(its data may not be read)".to_owned(), None),
            Err(error) => return Err(error),
        };
        let held = Held { since: Instant::now(), is_longer: true };
        Ok(Some(Head { node: node.to_owned(), name, since, held }))
    }
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. })
}

#[cfg(test)]
mod tests {
    use lockkeeper::Mutex;
    use lockkeeper_testserver::fault::{Passed, Subject};
    use lockkeeper_testserver::{Op, TestServer};

    use super::*;

    #[tokio::test]
    async fn new_locks_are_found_a_bounded_number_at_a_time_and_what_is_on_the_screen_is_read_meanwhile() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let enqueue = async |path: &str| Mutex::new(&manager, path).unwrap().enqueue().await.unwrap();
        let mut kept = vec![enqueue("/r/a").await];
        let interval = Duration::from_secs(2);
        let index = Index::new("/r".parse().unwrap(), 100, interval);
        let mut reader = Reader {
            manager: manager.clone(),
            index,
            nodes: 100,
            interval,
            background: 1,
            opened: None,
            is_complete: false,
        };
        let visible = vec!["/r/a".parse().unwrap()];
        let wanted = Wanted { visible, ..Wanted::default() };
        let (looks, _screen) = mpsc::channel(1);
        assert_eq!(reader.first(&wanted, &looks).await.unwrap().rows.len(), 1);
        for path in ["/r/a", "/r/b", "/r/c"] {
            kept.push(enqueue(path).await);
        }
        for expected in [2, 3] {
            let look = reader.again(&wanted, true).await.unwrap().unwrap();
            assert_eq!((look.rows.len(), look.rows[0].waiting), (expected, 1));
            assert!(look.age.is_some());
        }
        // What is on the screen is no part of the rest.
        let transcript = server.transcript();
        reader.background = 100;
        reader.again(&wanted, true).await.unwrap();
        let is_list = |of: &&Passed| of.subject == Subject::Request(Op::GetChildren);
        let mut lists: Vec<String> =
            transcript.passed().iter().filter(is_list).flat_map(|of| of.paths.clone()).collect();
        lists.sort_unstable();
        assert_eq!(lists, ["/r", "/r/a", "/r/b", "/r/c"]);
        // Nothing on the screen is new.
        assert!(reader.again(&wanted, false).await.unwrap().is_none());
    }
}
