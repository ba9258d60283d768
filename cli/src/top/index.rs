//! What is known of the directories below the root: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, SystemTime};

use lockkeeper::ZnodePath;
use tokio::time::Instant;

use super::queue::{self, Queue};
use super::row::{Held, Row, per_second};

/// The servers' own nodes.
const OF_THE_SERVERS: &str = "/zookeeper";

/// How many empty directories are kept for each node of the limit. They cost no more than their paths, and
/// locks that are free have left them.
const EMPTY_PER_NODE: usize = 10;

/// Every directory that was found, and when it was last listed.
#[derive(Debug)]
pub(super) struct Index {
    root: ZnodePath,
    nodes_max: usize,
    /// The time between two looks.
    interval: Duration,
    known: BTreeMap<ZnodePath, Directory>,
    /// The number of directories with children, without the root.
    counted: usize,
    /// The directories that this client may not list.
    unread: BTreeSet<ZnodePath>,
}

/// A node that may have children.
#[derive(Debug)]
pub(super) struct Directory {
    /// When it was listed, or found if it was not listed yet.
    since: Instant,
    is_listed: bool,
    has_children: bool,
    /// It has children, and is one too many, or has too many of them.
    is_left_out: bool,
    lock: Option<(Queue, Option<Head>)>,
    rate: Option<f64>,
    /// Children with the name of a contender, and whether they are directories.
    pub(super) checked: BTreeMap<String, bool>,
}

/// The node of the first holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Below the directory of the lock.
    pub(super) node: String,
    pub(super) name: String,
    /// When it was created. `None` if it may not be read.
    pub(super) since: Option<SystemTime>,
    /// Since when it is known to hold.
    pub(super) held: Held,
}

/// The result of one look at a directory.
#[derive(Debug)]
pub(super) enum Seen {
    /// It does not exist.
    Nothing,
    /// This client may not list it.
    Refused,
    Listed {
        children: Vec<String>,
        checked: BTreeMap<String, bool>,
        lock: Option<(Queue, Option<Head>)>,
    },
}

impl Index {
    pub(super) fn new(root: ZnodePath, nodes_max: usize, interval: Duration) -> Self {
        let known = BTreeMap::from([(root.clone(), Directory::found())]);
        Self { root, nodes_max, interval, known, counted: 0, unread: BTreeSet::new() }
    }

    pub(super) fn root(&self) -> &ZnodePath {
        &self.root
    }

    pub(super) fn directory(&self, path: &ZnodePath) -> Option<&Directory> {
        self.known.get(path)
    }

    /// All directories.
    pub(super) fn all(&self) -> Vec<ZnodePath> {
        self.known.keys().cloned().collect()
    }

    /// Those that were never listed.
    pub(super) fn unlisted(&self) -> Vec<ZnodePath> {
        let unlisted = self.known.iter().filter(|(_, of)| !of.is_listed);
        unlisted.map(|(path, _)| path.clone()).collect()
    }

    /// At most this number of directories that were not listed since then: first those that were never
    /// listed, then those whose list is the oldest.
    pub(super) fn oldest(&self, count: usize, then: Instant) -> Vec<ZnodePath> {
        let due = self.known.iter().filter(|(_, of)| !of.is_listed || of.since < then);
        let mut by_age: Vec<(bool, Instant, &ZnodePath)> =
            due.map(|(path, of)| (of.is_listed, of.since, path)).collect();
        by_age.sort_unstable();
        by_age.into_iter().take(count).map(|(_, _, path)| path.clone()).collect()
    }

    /// Whether the directory was listed within this time.
    pub(super) fn is_fresh(&self, path: &ZnodePath, within: Duration) -> bool {
        self.known.get(path).is_some_and(|of| of.is_listed && of.since.elapsed() < within)
    }

    /// The age of the oldest list. A directory that was not listed yet is as old as its discovery.
    pub(super) fn age(&self) -> Duration {
        self.known.values().map(|of| of.since.elapsed()).max().unwrap_or_default()
    }

    /// Whether a directory is left out because of the limit of nodes.
    pub(super) fn is_partial(&self) -> bool {
        self.known.values().any(|of| of.is_left_out)
    }

    pub(super) fn unread(&self) -> impl Iterator<Item = &ZnodePath> {
        self.unread.iter()
    }

    /// Takes over a look at a directory.
    pub(super) fn update(&mut self, path: &ZnodePath, seen: Seen) {
        let now = Instant::now();
        self.unread.remove(path);
        match seen {
            Seen::Nothing if *path == self.root => {
                self.keep_children(path, &[]);
                self.put(path, Directory::empty(now));
            }
            Seen::Nothing => self.remove(path),
            Seen::Refused => {
                self.unread.insert(path.clone());
                self.put(path, Directory::empty(now));
            }
            Seen::Listed { children, checked, mut lock } => {
                let has_children = !children.is_empty();
                // A semaphore has no lock of its own below it, and no lock is at the root of the servers.
                let is_semaphore = queue::is_semaphore(&children) && !path.is_root();
                let is_searched = |child: &&String| {
                    !is_semaphore && (!queue::is_contender(child) || checked.get(*child) == Some(&true))
                };
                let names: Vec<String> = children.iter().filter(is_searched).cloned().collect();
                if !self.known.contains_key(path) || self.leave_out(path, has_children) {
                    return;
                }
                if let Some((_, Some(head))) = &mut lock {
                    head.held = self.held(path, head, now);
                }
                let rate = self.known.get(path).and_then(|before| before.rate(lock.as_ref(), now));
                self.put(path, Directory { has_children, lock, rate, checked, ..Directory::empty(now) });
                self.keep_children(path, &names);
            }
        }
    }

    /// Since when the first holder of this directory is known to hold.
    fn held(&self, path: &ZnodePath, head: &Head, now: Instant) -> Held {
        let Some(before) = self.known.get(path).filter(|_| head.held.is_longer) else { return head.held };
        match before.head().filter(|before| before.node == head.node) {
            Some(before) => before.held,
            None => {
                let gap = now.duration_since(before.since);
                Held { since: now, is_longer: !before.is_listed || gap > self.interval.saturating_mul(2) }
            }
        }
    }

    /// Leaves a directory out if it is one too many. Returns whether it is.
    fn leave_out(&mut self, path: &ZnodePath, has_children: bool) -> bool {
        let is_new = has_children && self.known.get(path).is_some_and(|of| !of.has_children);
        let is_beyond = is_new && *path != self.root && self.counted >= self.nodes_max;
        if is_beyond {
            // It is listed again in its turn: there may be room then.
            self.put(path, Directory { is_left_out: true, ..Directory::empty(Instant::now()) });
        }
        is_beyond
    }

    fn put(&mut self, path: &ZnodePath, directory: Directory) {
        let counts = |of: &Directory| usize::from(of.has_children && *path != self.root);
        let (after, before) = (counts(&directory), self.known.get(path).map_or(0, counts));
        self.known.insert(path.clone(), directory);
        self.counted = self.counted + after - before;
    }

    /// Makes these the children of a directory.
    fn keep_children(&mut self, path: &ZnodePath, names: &[String]) {
        let kept: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let below = if path.is_root() { "/".to_owned() } else { format!("{path}/") };
        let gone = |known: &&ZnodePath| {
            let name = known.as_str().strip_prefix(&below).and_then(|rest| rest.split('/').next());
            name.is_some_and(|name| !name.is_empty() && !kept.contains(name))
        };
        // What begins like this path is behind it, and not all of that is below it.
        let behind = self.known.range((Bound::Excluded(path), Bound::Unbounded)).map(|(path, _)| path);
        let like = behind.take_while(|known| known.as_str().starts_with(path.as_str()));
        let gone: Vec<ZnodePath> = like.filter(gone).cloned().collect();
        for path in gone {
            self.forget(&path);
        }
        let children = names.iter().filter_map(|name| path.child(name).ok());
        let most = self.nodes_max.saturating_add(1).saturating_mul(EMPTY_PER_NODE);
        for child in children.filter(|child| child.as_str() != OF_THE_SERVERS) {
            if self.known.len() < most || self.known.contains_key(&child) {
                self.known.entry(child).or_insert_with(Directory::found);
            } else if let Some(directory) = self.known.get_mut(path) {
                directory.is_left_out = true;
            }
        }
    }

    /// A directory that does not exist has nothing below it.
    fn remove(&mut self, path: &ZnodePath) {
        self.keep_children(path, &[]);
        self.forget(path);
    }

    fn forget(&mut self, path: &ZnodePath) {
        let removed = self.known.remove(path);
        self.counted -= removed.map_or(0, |of| usize::from(of.has_children));
        self.unread.remove(path);
    }

    /// Every lock with a contender.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.known.iter().filter_map(|(path, of)| of.row(path)).collect()
    }
}

impl Directory {
    /// One that a list names.
    fn found() -> Self {
        Self { is_listed: false, ..Self::empty(Instant::now()) }
    }

    /// One that was listed, and has no children.
    fn empty(since: Instant) -> Self {
        let (has_children, is_left_out, lock, rate) = (false, false, None, None);
        Self { since, is_listed: true, has_children, is_left_out, lock, rate, checked: BTreeMap::new() }
    }

    /// The node of the first holder, as it was seen.
    pub(super) fn head(&self) -> Option<&Head> {
        self.lock.as_ref()?.1.as_ref()
    }

    fn rate(&self, lock: Option<&(Queue, Option<Head>)>, now: Instant) -> Option<f64> {
        let (before, after) = (self.lock.as_ref()?.0.newest?, lock?.0.newest?);
        Some(per_second(after.saturating_sub(before), now.duration_since(self.since)))
    }

    fn row(&self, path: &ZnodePath) -> Option<Row> {
        let (queue, head) = self.lock.as_ref()?;
        let holder = match (head, queue.holders) {
            (None, 0) => "-".to_owned(),
            (None, _) => "?".to_owned(),
            (Some(head), 0 | 1) => head.name.clone(),
            (Some(head), holders) => format!("{} and {} more", head.name, holders - 1),
        };
        let (since, held) = (head.as_ref().and_then(|head| head.since), head.as_ref().map(|head| head.held));
        let (recipe, waiting) = (queue.recipe, queue.waiting);
        Some(Row { path: path.clone(), recipe, holder, since, held, waiting, rate: self.rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn path(text: &str) -> ZnodePath {
        text.parse().unwrap()
    }

    fn listed(names: &[&str]) -> Seen {
        let children: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let lock = Queue::of(&children).map(|queue| (queue, None));
        Seen::Listed { children, checked: BTreeMap::new(), lock }
    }

    fn texts(paths: &[ZnodePath]) -> Vec<&str> {
        paths.iter().map(ZnodePath::as_str).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn directories_are_found_and_forgotten_with_all_that_is_below_them() {
        let mut index = Index::new(path("/"), 10, SECOND);
        index.update(&path("/"), listed(&["a", "zookeeper"]));
        assert_eq!(texts(&index.unlisted()), ["/a"]);
        index.update(&path("/a"), listed(&["b", "c"]));
        index.update(&path("/a/b"), listed(&["_c_x-lock-0000000001", "_c_y-lock-0000000004"]));
        index.update(&path("/a/c"), listed(&[]));
        let rows = index.rows();
        assert_eq!((rows.len(), rows[0].path.as_str(), rows[0].waiting), (1, "/a/b", 1));
        tokio::time::advance(Duration::from_secs(2)).await;
        index.update(&path("/a/b"), listed(&["_c_z-lock-0000000010"]));
        assert_eq!(index.rows()[0].rate, Some(3.0));
        assert_eq!(texts(&index.oldest(2, Instant::now())), ["/", "/a"]);
        // The list of /a/b is new.
        assert_eq!(texts(&index.oldest(9, Instant::now())), ["/", "/a", "/a/c"]);
        assert_eq!(index.age(), Duration::from_secs(2));
        assert!(index.is_fresh(&path("/a/b"), Duration::from_secs(1)));
        index.update(&path("/a"), Seen::Nothing);
        assert_eq!((texts(&index.all()), index.counted), (vec!["/"], 0));
        // A list that was under way.
        index.update(&path("/a/b"), listed(&["_c_z-lock-0000000010"]));
        assert!(index.rows().is_empty());
    }

    #[tokio::test]
    async fn what_is_beyond_the_limit_or_refused_makes_it_partial() {
        let mut index = Index::new(path("/"), 1, SECOND);
        index.update(&path("/"), listed(&["a", "b", "empty"]));
        for name in ["/a", "/b"] {
            index.update(&path(name), listed(&["_c_x-lock-0000000001"]));
        }
        index.update(&path("/empty"), listed(&[]));
        assert_eq!((index.rows().len(), index.is_partial()), (1, true));
        index.update(&path("/a"), Seen::Refused);
        assert_eq!(index.unread().count(), 1);
        index.update(&path("/a"), listed(&[]));
        assert_eq!(index.unread().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_is_as_long_as_it_was_seen_and_said_to_be_longer_if_its_begin_was_not_seen() {
        let mut index = Index::new(path("/a"), 10, SECOND);
        let held_by = |node: &str| {
            let children = vec![node.to_owned()];
            let queue = Queue::of(&children).unwrap();
            let held = Held { since: Instant::now(), is_longer: true };
            let head = Head { node: node.to_owned(), name: node.to_owned(), since: None, held };
            Seen::Listed { children, checked: BTreeMap::new(), lock: Some((queue, Some(head))) }
        };
        // Each look is so many seconds after the one before.
        for (node, after, expected) in [
            ("_c_a-lock-0000000001", 0, (0, true)),
            ("_c_a-lock-0000000001", 5, (5, true)),
            ("_c_b-lock-0000000002", 1, (0, false)),
            ("_c_b-lock-0000000002", 9, (9, false)),
            ("_c_c-lock-0000000003", 9, (0, true)),
        ] {
            tokio::time::advance(Duration::from_secs(after)).await;
            index.update(&path("/a"), held_by(node));
            let held = index.rows()[0].held.unwrap();
            assert_eq!((held.since.elapsed().as_secs(), held.is_longer), expected, "{node}");
        }
    }

    #[tokio::test]
    async fn empty_directories_without_number_fill_no_memory() {
        let mut index = Index::new(path("/"), 1, SECOND);
        let names: Vec<String> = (0..100).map(|number| format!("{number:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        index.update(&path("/"), listed(&names));
        assert_eq!((index.all().len(), index.is_partial()), (20, true));
        index.update(&path("/"), listed(&names[..7]));
        assert_eq!((index.all().len(), index.is_partial()), (8, false));
    }

    #[tokio::test]
    async fn a_semaphore_hides_no_lock_and_its_directories_are_none() {
        let mut index = Index::new(path("/"), 10, SECOND);
        index.update(&path("/"), listed(&["pool"]));
        let leases = ["_c_x-lease-0000000001".to_owned()];
        let lock = Queue::of_semaphore(&leases, &[]).map(|queue| (queue, None));
        let children = vec!["leases".to_owned(), "locks".to_owned()];
        index.update(&path("/pool"), Seen::Listed { children, checked: BTreeMap::new(), lock });
        assert_eq!((index.rows().len(), index.all().len()), (1, 2));
    }
}
