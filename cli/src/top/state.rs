//! What the screen shows, and what a key does: pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::{ContenderInfo, Inspection, Role};

use crate::inspect::print::name;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) root: String,
    rows: Vec<Row>,
    /// The path of the selected row: rows change their places.
    selected: Option<String>,
    pub(crate) sort: Sort,
    pub(crate) view: View,
    /// The outcome of the last action or look.
    pub(crate) message: String,
    /// The highest sequence number of each path.
    newest: BTreeMap<String, i64>,
}

/// A lock on the screen.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) lock: Inspection,
    pub(crate) holder: String,
    pub(crate) age: Option<Duration>,
    pub(crate) waiting: usize,
    /// New contenders a second, since the last look.
    pub(crate) rate: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Waiters,
    Age,
    Rate,
    Path,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    List,
    /// The table of the selected lock.
    Inspect,
    /// Whether to take the lock away from these.
    Confirm(Vec<ContenderInfo>),
}

/// A key, as far as the screen knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    Sort(Sort),
    Open,
    Back,
    Ask,
    Release,
    Yes,
    Quit,
    Other,
}

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// Ask these to release.
    Ask(Vec<ContenderInfo>),
    /// Take the lock away from these.
    Release(Vec<ContenderInfo>),
}

impl State {
    pub(crate) fn new(root: &str) -> Self {
        Self {
            root: root.to_owned(),
            rows: Vec::new(),
            selected: None,
            sort: Sort::Waiters,
            view: View::List,
            message: "looking …".to_owned(),
            newest: BTreeMap::new(),
        }
    }

    /// Takes over a look. `since_last` is the time since the look before.
    pub(crate) fn update(&mut self, locks: Vec<Inspection>, since_last: Option<Duration>) {
        let before = std::mem::take(&mut self.newest);
        let row = |lock: Inspection| {
            let path = lock.path().to_string();
            let newest = lock.contenders().iter().filter_map(|of| sequence(of.name())).max();
            let rate = match (newest, before.get(&path), since_last) {
                (Some(now), Some(before), Some(time)) => Some(per_second(now - before, time)),
                _ => None,
            };
            if let Some(newest) = newest {
                self.newest.insert(path, newest);
            }
            Row::of(lock, rate)
        };
        self.rows = locks.into_iter().map(row).collect();
        self.arrange();
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The index of the selected row: the first one if the selected lock is free now.
    pub(crate) fn selected(&self) -> Option<usize> {
        let selected = self.selected.as_deref();
        let at = self.rows.iter().position(|row| Some(row.lock.path().as_str()) == selected);
        at.or_else(|| (!self.rows.is_empty()).then_some(0))
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected()?)
    }

    pub(crate) fn on_key(&mut self, key: Key) -> Action {
        self.message.clear();
        if let View::Confirm(chosen) = &self.view {
            let chosen = chosen.clone();
            self.view = View::List;
            return match key {
                Key::Yes => Action::Release(chosen),
                Key::Quit => Action::Quit,
                _ => {
                    self.message = "nothing was done".to_owned();
                    Action::Nothing
                }
            };
        }
        match key {
            Key::Quit => return Action::Quit,
            Key::Up => self.select(-1),
            Key::Down => self.select(1),
            Key::Sort(sort) => {
                self.sort = sort;
                self.arrange();
            }
            Key::Open if self.selected().is_some() => self.view = View::Inspect,
            Key::Back => self.view = View::List,
            Key::Ask => match self.holders() {
                holders if holders.is_empty() => self.message = "nobody holds it".to_owned(),
                holders => return Action::Ask(holders),
            },
            Key::Release => match self.holders() {
                holders if holders.is_empty() => self.message = "nobody holds it".to_owned(),
                holders => self.view = View::Confirm(holders),
            },
            Key::Open | Key::Yes | Key::Other => {}
        }
        Action::Nothing
    }

    /// The holders of the selected lock, as the screen shows them.
    fn holders(&self) -> Vec<ContenderInfo> {
        let lock = self.selected_row().map(|row| &row.lock);
        let all = lock.map(Inspection::contenders).unwrap_or_default();
        all.iter().filter(|of| of.role() == Role::Holder).cloned().collect()
    }

    fn select(&mut self, by: isize) {
        let Some(at) = self.selected() else { return };
        let at = at.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(at).map(|row| row.lock.path().to_string());
    }

    /// Sorts the rows: the greatest first, and equal ones by their paths.
    fn arrange(&mut self) {
        self.rows.sort_by(|one, other| one.lock.path().cmp(other.lock.path()));
        match self.sort {
            Sort::Waiters => self.rows.sort_by_key(|row| Reverse(row.waiting)),
            Sort::Age => self.rows.sort_by_key(|row| Reverse(row.age)),
            Sort::Rate => {
                self.rows.sort_by(|one, other| {
                    other.rate.unwrap_or_default().total_cmp(&one.rate.unwrap_or_default())
                });
            }
            Sort::Path => {}
        }
    }
}

impl Row {
    fn of(lock: Inspection, rate: Option<f64>) -> Self {
        let (holders, waiting) = (lock.holders().count(), lock.waiters().count());
        let first = lock.holders().next();
        let holder = match first {
            None => "-".to_owned(),
            Some(first) if holders > 1 => format!("{} and {} more", name(first), holders - 1),
            Some(first) => name(first),
        };
        let age = first.map(ContenderInfo::age);
        Self { holder, age, waiting, rate, lock }
    }
}

fn per_second(count: i64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64().max(0.001);
    f64::from(i32::try_from(count.max(0)).unwrap_or(i32::MAX)) / seconds
}

/// The number that the server appended to the name.
fn sequence(name: &str) -> Option<i64> {
    name.get(name.len().checked_sub(10)?..)?.parse().ok().filter(|number| *number >= 0)
}

impl Sort {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiters => "waiters",
            Self::Age => "age",
            Self::Rate => "rate",
            Self::Path => "path",
        }
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::{ConnectionManager, Mutex, Survey};
    use lockkeeper_testserver::TestServer;

    use super::*;

    /// Two locks: `/a` with one holder, `/b` with one holder and one waiter.
    async fn state() -> State {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let mut kept = Vec::new();
        for path in ["/a", "/b", "/b"] {
            kept.push(Mutex::new(&manager, path).unwrap().enqueue().await.unwrap());
        }
        let mut state = State::new("/");
        let survey = Survey::below(&manager, "/").await.unwrap();
        state.update(survey.locks().to_vec(), None);
        state
    }

    fn paths(state: &State) -> Vec<&str> {
        state.rows().iter().map(|row| row.lock.path().as_str()).collect()
    }

    #[tokio::test]
    async fn rows_are_sorted_and_the_selection_stays_with_its_lock() {
        let mut state = state().await;
        assert_eq!(paths(&state), ["/b", "/a"]);
        state.on_key(Key::Down);
        assert_eq!(state.selected_row().unwrap().lock.path().as_str(), "/a");
        state.on_key(Key::Sort(Sort::Path));
        assert_eq!((paths(&state), state.selected()), (vec!["/a", "/b"], Some(0)));
        state.on_key(Key::Up);
        assert_eq!(state.selected(), Some(0));
        let again: Vec<Inspection> = state.rows().iter().map(|row| row.lock.clone()).collect();
        state.update(again, Some(Duration::from_secs(1)));
        assert_eq!(state.rows()[0].rate, Some(0.0));
    }

    #[tokio::test]
    async fn only_yes_takes_a_lock_away_and_from_those_who_were_shown() {
        let mut state = state().await;
        let shown = state.rows()[0].lock.holders().next().unwrap().clone();
        for key in [Key::Other, Key::Back, Key::Open, Key::Release] {
            assert_eq!(state.on_key(Key::Release), Action::Nothing);
            assert_eq!(state.view, View::Confirm(vec![shown.clone()]));
            assert_eq!(state.on_key(key), Action::Nothing);
            assert_eq!(state.view, View::List);
        }
        state.on_key(Key::Release);
        // Meanwhile all of them have gone.
        state.update(Vec::new(), None);
        assert_eq!(state.on_key(Key::Yes), Action::Release(vec![shown]));
        assert_eq!(state.on_key(Key::Yes), Action::Nothing);
        assert_eq!(state.on_key(Key::Ask), Action::Nothing);
        assert_eq!(state.on_key(Key::Quit), Action::Quit);
    }

    #[test]
    fn the_rate_counts_new_contenders() {
        assert_eq!(sequence("_c_x-lock-0000000041"), Some(41));
        assert_eq!(sequence("readme"), None);
        assert_eq!(per_second(10, Duration::from_secs(2)), 5.0);
        assert_eq!(per_second(-5, Duration::from_secs(2)), 0.0);
    }
}
