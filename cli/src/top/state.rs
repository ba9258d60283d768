//! What the screen shows, and what a key does: pure.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::Inspection;
use lockkeeper::inspect::{ContenderInfo, Role, Survey};

use super::row::{Row, Sort, per_second, sequence};
use crate::partial::partial;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) root: String,
    nodes: usize,
    /// What the last look did not see.
    pub(crate) partial: Option<String>,
    rows: Vec<Row>,
    /// The path of the selected lock. It stays selected when its row has another place, and when it has none:
    /// a key never acts on a lock that the user has not selected.
    selected: Option<String>,
    /// The last place of the selected row, where the selection moves on from when the row is gone.
    place: usize,
    pub(crate) sort: Sort,
    pub(crate) view: View,
    /// The outcome of the last key.
    message: String,
    /// Whether the servers have not answered yet to what a key asked for.
    is_acting: bool,
    /// Why the last look failed.
    pub(crate) trouble: Option<String>,
    /// The highest sequence number of each path.
    newest: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    List,
    /// The table of the selected lock.
    Inspect,
    /// Whether to do this to these holders of the lock at this path.
    Confirm(Act, String, Vec<ContenderInfo>),
}

/// What is done to holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// They are asked to release.
    Ask,
    /// The lock is taken away from them.
    Release,
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
    Suspend,
    Quit,
    Other,
}

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// Stop the job.
    Suspend,
    Act(Act, Vec<ContenderInfo>),
}

impl State {
    /// For looks that read at most this number of nodes.
    pub(crate) fn new(root: &str, nodes: usize) -> Self {
        Self {
            root: root.to_owned(),
            nodes,
            partial: None,
            rows: Vec::new(),
            selected: None,
            place: 0,
            sort: Sort::Waiters,
            view: View::List,
            message: "looking …".to_owned(),
            is_acting: false,
            trouble: None,
            newest: BTreeMap::new(),
        }
    }

    /// Takes over a look. `since_last` is the time since the look before.
    pub(crate) fn update(&mut self, survey: &Survey, since_last: Option<Duration>) {
        self.partial = partial(survey, self.nodes);
        self.show(survey.locks().to_vec(), since_last);
    }

    fn show(&mut self, locks: Vec<Inspection>, since_last: Option<Duration>) {
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
        self.trouble = None;
        if since_last.is_none() {
            self.message.clear();
        }
        self.arrange();
        if self.selected.is_none() {
            self.select(0);
        }
    }

    /// The servers have answered to what a key asked for.
    pub(crate) fn acted(&mut self, outcome: String) {
        self.is_acting = false;
        self.message = outcome;
    }

    /// The line for the outcome of the last key and for what is wrong.
    pub(crate) fn foot(&self) -> String {
        let ended = || self.selected_row().is_none().then(|| self.ended()).flatten();
        let message = (!self.message.is_empty()).then(|| self.message.clone()).or_else(ended);
        message.into_iter().chain(self.trouble.clone()).collect::<Vec<_>>().join("; ")
    }

    /// That the selected lock has no row any more.
    fn ended(&self) -> Option<String> {
        Some(format!(
            "{} has no contender any more; up and down select another lock",
            self.selected.as_ref()?
        ))
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The index of the selected row. `None` if the selected lock has no contender any more.
    pub(crate) fn selected(&self) -> Option<usize> {
        let selected = self.selected.as_deref()?;
        self.rows.iter().position(|row| row.lock.path().as_str() == selected)
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected()?)
    }

    /// `is_whole` says whether the screen shows all of a question.
    pub(crate) fn on_key(&mut self, key: Key, is_whole: bool) -> Action {
        self.message.clear();
        if key == Key::Suspend {
            return Action::Suspend;
        }
        if let View::Confirm(act, _, chosen) = &self.view {
            let (act, chosen) = (*act, chosen.clone());
            if key == Key::Yes && !is_whole {
                self.message = "enlarge the window: it does not show all that y would do".to_owned();
                return Action::Nothing;
            }
            self.view = View::List;
            return match key {
                Key::Yes => {
                    self.message = "waiting for the servers …".to_owned();
                    self.is_acting = true;
                    Action::Act(act, chosen)
                }
                Key::Quit => Action::Quit,
                _ => {
                    self.message = "nothing was done".to_owned();
                    Action::Nothing
                }
            };
        }
        match key {
            Key::Quit => return Action::Quit,
            Key::Up => self.step(-1),
            Key::Down => self.step(1),
            Key::Sort(sort) => {
                self.sort = sort;
                self.arrange();
            }
            Key::Open if self.selected().is_some() => self.view = View::Inspect,
            Key::Back => self.view = View::List,
            Key::Ask => self.confirm(Act::Ask),
            Key::Release => self.confirm(Act::Release),
            Key::Open | Key::Yes | Key::Suspend | Key::Other => {}
        }
        Action::Nothing
    }

    /// Asks whether to do this to the holders of the selected lock, as the screen shows them.
    fn confirm(&mut self, act: Act) {
        if self.is_acting {
            self.message = "still waiting for the servers".to_owned();
            return;
        }
        let Some(lock) = self.selected_row().map(|row| &row.lock) else { return };
        let holders = lock.contenders().iter().filter(|of| of.role() == Role::Holder).cloned();
        let holders: Vec<ContenderInfo> = holders.collect();
        if holders.is_empty() {
            self.message = format!("nobody holds {}", lock.path());
        } else {
            self.view = View::Confirm(act, lock.path().to_string(), holders);
        }
    }

    /// Selects the row above or below. Without the selected one, the row below has its place.
    fn step(&mut self, by: isize) {
        match self.selected() {
            Some(at) => self.select(at.saturating_add_signed(by)),
            None => self.select(self.place.saturating_add_signed(by.min(0))),
        }
    }

    fn select(&mut self, at: usize) {
        self.place = at.min(self.rows.len().saturating_sub(1));
        if let Some(row) = self.rows.get(self.place) {
            self.selected = Some(row.lock.path().to_string());
        }
    }

    fn arrange(&mut self) {
        self.sort.arrange(&mut self.rows);
        self.place = self.selected().unwrap_or(self.place);
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::{ConnectionManager, Mutex};
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
        let mut state = State::new("/", 10);
        let survey = Survey::below(&manager, "/").await.unwrap();
        state.update(&survey, None);
        state
    }

    fn paths(state: &State) -> Vec<&str> {
        state.rows().iter().map(|row| row.lock.path().as_str()).collect()
    }

    fn press(state: &mut State, key: Key) -> Action {
        state.on_key(key, true)
    }

    fn rows(state: &State) -> Vec<Inspection> {
        state.rows().iter().map(|row| row.lock.clone()).collect()
    }

    #[tokio::test]
    async fn rows_are_sorted_and_the_selection_stays_with_its_lock() {
        let mut state = state().await;
        assert_eq!(paths(&state), ["/b", "/a"]);
        press(&mut state, Key::Down);
        assert_eq!(state.selected_row().unwrap().lock.path().as_str(), "/a");
        press(&mut state, Key::Sort(Sort::Path));
        assert_eq!((paths(&state), state.selected()), (vec!["/a", "/b"], Some(0)));
        press(&mut state, Key::Up);
        assert_eq!(state.selected(), Some(0));
        state.show(rows(&state), Some(Duration::from_secs(1)));
        assert_eq!(state.rows()[0].rate, Some(0.0));
    }

    #[tokio::test]
    async fn when_the_selected_lock_ends_no_key_acts_on_another() {
        let mut state = state().await;
        assert_eq!((paths(&state), state.selected()), (vec!["/b", "/a"], Some(0)));
        let all = rows(&state);
        state.show(all[1..].to_vec(), Some(Duration::from_secs(1)));
        assert_eq!((paths(&state), state.selected()), (vec!["/a"], None));
        for key in [Key::Ask, Key::Release, Key::Open, Key::Yes] {
            assert_eq!(press(&mut state, key), Action::Nothing);
            assert_eq!(state.view, View::List, "{key:?}");
        }
        assert!(state.foot().contains("/b has no contender any more"), "{}", state.foot());
        // It is selected again when somebody contends for it again.
        state.show(all.clone(), Some(Duration::from_secs(1)));
        assert_eq!((state.selected(), state.foot().as_str()), (Some(0), ""));
        state.show(all[1..].to_vec(), Some(Duration::from_secs(1)));
        press(&mut state, Key::Down);
        assert_eq!(state.selected_row().unwrap().lock.path().as_str(), "/a");
    }

    #[tokio::test]
    async fn only_yes_acts_and_on_those_who_were_shown() {
        for (ask, act) in [(Key::Ask, Act::Ask), (Key::Release, Act::Release)] {
            let mut state = state().await;
            let shown = state.rows()[0].lock.holders().next().unwrap().clone();
            for key in [Key::Other, Key::Back, Key::Open, Key::Release, Key::Ask] {
                assert_eq!(press(&mut state, ask), Action::Nothing);
                assert_eq!(state.view, View::Confirm(act, "/b".to_owned(), vec![shown.clone()]));
                assert_eq!(press(&mut state, key), Action::Nothing);
                assert_eq!(state.view, View::List);
            }
            press(&mut state, ask);
            // Meanwhile all of them have gone.
            state.show(Vec::new(), Some(Duration::from_secs(1)));
            assert_eq!(press(&mut state, Key::Yes), Action::Act(act, vec![shown]));
            assert_eq!(press(&mut state, Key::Yes), Action::Nothing);
            assert_eq!(press(&mut state, ask), Action::Nothing);
            assert_eq!(press(&mut state, Key::Quit), Action::Quit);
        }
    }

    #[tokio::test]
    async fn a_question_that_the_screen_does_not_show_whole_is_not_confirmed() {
        let mut state = state().await;
        press(&mut state, Key::Release);
        assert_eq!(state.on_key(Key::Yes, false), Action::Nothing);
        assert!(matches!(state.view, View::Confirm(..)) && state.foot().contains("enlarge"));
        assert!(matches!(state.on_key(Key::Yes, true), Action::Act(Act::Release, _)));
        // One thing at a time.
        press(&mut state, Key::Release);
        assert_eq!(state.view, View::List);
        state.acted("done".to_owned());
        press(&mut state, Key::Release);
        assert!(matches!(state.view, View::Confirm(..)));
    }

    #[tokio::test]
    async fn what_was_wrong_is_shown_until_the_next_look() {
        let mut state = state().await;
        state.trouble = Some("no server answers".to_owned());
        press(&mut state, Key::Down);
        assert_eq!(state.foot(), "no server answers");
        assert_eq!(press(&mut state, Key::Quit), Action::Quit);
        state.show(rows(&state), Some(Duration::from_secs(1)));
        assert_eq!(state.foot(), "");
    }
}
