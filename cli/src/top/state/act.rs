//! What is done to holders: each act is confirmed on a page that names the lock and its holders.

use lockkeeper::ZnodePath;
use lockkeeper::inspect::{ContenderInfo, Role};

use super::keys::{Act, Action, Key, View};
use super::model::State;

impl State {
    /// Lets the holders of the selected lock be read, for a question.
    pub(super) fn ask(&mut self, act: Act) -> Action {
        if self.is_acting {
            self.message = "still waiting for the servers".to_owned();
            return Action::Nothing;
        }
        let Some(path) = self.list.selected_path() else { return Action::Nothing };
        self.message = format!("reading the holders of {path} …");
        self.asking = Some((act, path.clone()));
        Action::Ask(act, path)
    }

    /// The holders of a lock were read for a question. Nothing comes of it if a key was pressed meanwhile.
    pub(crate) fn ask_about(
        &mut self,
        act: Act,
        path: ZnodePath,
        contenders: Result<Vec<ContenderInfo>, String>,
    ) {
        if self.asking.as_ref() != Some(&(act, path.clone())) {
            return;
        }
        self.asking = None;
        match contenders {
            Err(error) => self.message = error,
            Ok(mut holders) => {
                holders.retain(|of| of.role() == Role::Holder);
                if holders.is_empty() {
                    self.message = format!("nobody holds {path}");
                } else {
                    self.message.clear();
                    self.show(View::Confirm(act, path, holders));
                }
            }
        }
    }

    /// A key on the page of a question.
    pub(super) fn answer(&mut self, key: Key, is_whole: bool) -> Action {
        let View::Confirm(act, _, chosen) = &self.view else { return Action::Nothing };
        let (act, chosen) = (*act, chosen.clone());
        if key == Key::Char('y') && !is_whole {
            self.message = "enlarge the window: it does not show all that y would do".to_owned();
            return Action::Nothing;
        }
        self.show(View::List);
        match key {
            Key::Char('y') => {
                self.message = "waiting for the servers …".to_owned();
                self.is_acting = true;
                Action::Act(act, chosen)
            }
            Key::Char('q') => Action::Quit,
            _ => {
                self.message = "nothing was done".to_owned();
                Action::Nothing
            }
        }
    }

    /// The servers have answered to what a key asked for.
    pub(crate) fn acted(&mut self, outcome: String) {
        self.is_acting = false;
        self.message = outcome;
        self.acts += 1;
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::{ConnectionManager, Inspection, Mutex};
    use lockkeeper_testserver::TestServer;

    use super::super::keys::Move;
    use super::super::list::tests::row;
    use super::*;
    use crate::top::reader::Look;
    use crate::top::row::Sort;

    /// Two locks of which the first is selected, and the contenders of a lock with one holder and one waiter.
    async fn state() -> (State, ZnodePath, Vec<ContenderInfo>) {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let mut kept = Vec::new();
        for _ in 0..2 {
            kept.push(Mutex::new(&manager, "/b").unwrap().enqueue().await.unwrap());
        }
        let contenders = Inspection::of_path(&manager, "/b").await.unwrap().unwrap().contenders().to_vec();
        let mut state = State::new("/", Sort::Waiters, std::time::Duration::ZERO);
        let rows = vec![row("/a", 0), row("/b", 1)];
        state.update(Look { rows, age: Some(std::time::Duration::ZERO), ..Look::default() });
        state.set_height(10);
        (state, "/b".parse().unwrap(), contenders)
    }

    fn press(state: &mut State, key: char) -> Action {
        state.on_key(Key::Char(key), true)
    }

    #[tokio::test]
    async fn only_yes_acts_and_on_those_who_were_shown() {
        let (_, path, contenders) = state().await;
        for (key, act) in [('v', Act::Ask), ('x', Act::Release)] {
            let (mut state, ..) = state().await;
            let shown = vec![contenders[0].clone()];
            let asked = Action::Ask(act, path.clone());
            for other in [Key::Other, Key::Back, Key::Enter, Key::Char('x'), Key::Char('v')] {
                assert_eq!(press(&mut state, key), asked);
                state.ask_about(act, path.clone(), Ok(contenders.clone()));
                assert_eq!(state.view, View::Confirm(act, path.clone(), shown.clone()));
                assert_eq!(state.on_key(other, true), Action::Nothing);
                assert_eq!(state.view, View::List);
            }
            press(&mut state, key);
            state.ask_about(act, path.clone(), Ok(contenders.clone()));
            // Meanwhile all of them have gone.
            state.update(Look::default());
            assert_eq!(press(&mut state, 'y'), Action::Act(act, shown));
            assert_eq!(press(&mut state, 'y'), Action::Nothing);
            assert_eq!(press(&mut state, key), Action::Nothing);
            assert_eq!(press(&mut state, 'q'), Action::Quit);
        }
    }

    #[tokio::test]
    async fn a_key_that_is_pressed_before_the_question_is_shown_answers_nothing() {
        for early in ['y', 'w'] {
            let (mut state, path, contenders) = state().await;
            press(&mut state, 'x');
            assert_eq!(press(&mut state, early), Action::Nothing);
            state.ask_about(Act::Release, path, Ok(contenders));
            assert_eq!(state.view, View::List);
            assert_eq!(press(&mut state, 'y'), Action::Nothing);
        }
    }

    #[tokio::test]
    async fn a_question_that_the_screen_does_not_show_whole_is_not_confirmed() {
        let (mut state, path, contenders) = state().await;
        press(&mut state, 'x');
        state.ask_about(Act::Release, path, Ok(contenders));
        assert_eq!(state.on_key(Key::Char('y'), false), Action::Nothing);
        assert!(matches!(state.view, View::Confirm(..)) && state.foot().contains("enlarge"));
        assert_eq!(state.on_key(Key::Move(Move::Down), false), Action::Nothing);
        assert!(matches!(state.view, View::Confirm(..)), "a question can be read to its end");
        assert!(matches!(press(&mut state, 'y'), Action::Act(Act::Release, _)));
        // One thing at a time.
        press(&mut state, 'x');
        assert!(state.foot().contains("still waiting"), "{}", state.foot());
        state.acted("done".to_owned());
        assert!(matches!(press(&mut state, 'x'), Action::Ask(..)));
    }

    #[tokio::test]
    async fn a_table_says_nothing_of_a_lock_before_it_was_read() {
        let (mut state, path, _) = state().await;
        for _ in 0..2 {
            state.on_key(Key::Enter, true);
            assert_eq!(state.page(), format!("reading {path} …"));
            assert_ne!(state.wanted().page, None);
            let age = Some(std::time::Duration::ZERO);
            let page = Some((path.clone(), None));
            state.update(Look { rows: vec![row("/b", 1)], age, page, ..Look::default() });
            assert_eq!(state.page(), format!("{path}: nobody contends"));
            let opened = state.wanted().page;
            state.on_key(Key::Back, true);
            state.on_key(Key::Enter, true);
            assert_ne!(state.wanted().page, opened, "it is read again");
            state.on_key(Key::Back, true);
        }
    }

    #[tokio::test]
    async fn what_was_wrong_is_shown_until_the_next_look() {
        let (mut state, path, _) = state().await;
        state.trouble = Some("no server answers".to_owned());
        press(&mut state, 'p');
        assert_eq!(state.foot(), "no server answers");
        press(&mut state, 'x');
        state.ask_about(Act::Release, path, Err("no answer".to_owned()));
        assert_eq!(state.foot(), "no answer; no server answers");
        assert_eq!(press(&mut state, 'q'), Action::Quit);
        let age = Some(std::time::Duration::ZERO);
        state.update(Look { rows: vec![row("/b", 1)], age, ..Look::default() });
        assert_eq!(state.foot(), "");
    }
}
