//! The state of the screen.

use std::time::Duration;

use lockkeeper::{Inspection, ZnodePath};

use super::keys::{Act, Action, Key, View};
use super::list::List;
use crate::top::reader::{Look, Wanted};
use crate::top::row::{Row, Sort};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) root: String,
    /// What the last look did not see.
    pub(crate) partial: Option<String>,
    /// The age of the oldest list. `None` before every directory was listed once.
    pub(crate) age: Option<Duration>,
    /// The time between two looks.
    interval: Duration,
    pub(super) list: List,
    pub(crate) view: View,
    /// The first line of a page that the screen shows.
    scroll: usize,
    /// How many lines the screen has for a list or a page.
    height: usize,
    /// The table of the lock that is open. The outer `None` is one that was not read yet.
    page: Option<Option<Inspection>>,
    /// Another number for each table that was opened.
    opening: u64,
    /// Whether keys change the text of the filter.
    is_filtering: bool,
    /// The outcome of the last key.
    pub(super) message: String,
    /// What a key asked for, while the holders are read.
    pub(super) asking: Option<(Act, ZnodePath)>,
    /// Whether the servers have not answered yet to what a key asked for.
    pub(super) is_acting: bool,
    /// Why the last look failed.
    pub(crate) trouble: Option<String>,
    keys: u64,
    pub(super) acts: u64,
}

impl State {
    /// For a screen that looks this often.
    pub(crate) fn new(root: &str, sort: Sort, interval: Duration) -> Self {
        Self {
            interval,
            root: root.to_owned(),
            partial: None,
            age: None,
            list: List::new(sort),
            view: View::List,
            scroll: 0,
            height: 0,
            page: None,
            opening: 0,
            is_filtering: false,
            message: "looking …".to_owned(),
            asking: None,
            is_acting: false,
            trouble: None,
            keys: 0,
            acts: 0,
        }
    }

    /// Takes over a look.
    pub(crate) fn update(&mut self, look: Look) {
        if self.age.is_none() && look.age.is_some() {
            self.message.clear();
        }
        (self.partial, self.age, self.trouble) = (look.partial, look.age, None);
        self.list.update(look.rows);
        if let Some((path, page)) = look.page
            && self.opened() == Some(&path)
        {
            self.page = Some(page);
        }
    }

    /// The lock whose table is open.
    fn opened(&self) -> Option<&ZnodePath> {
        match &self.view {
            View::Inspect(path) => Some(path),
            _ => None,
        }
    }

    /// The text of the table that is open.
    pub(crate) fn page(&self) -> String {
        match (self.opened(), &self.page) {
            (Some(_), Some(Some(lock))) => format!("{lock:#}"),
            (Some(path), Some(None)) => format!("{path}: nobody contends"),
            (Some(path), None) => format!("reading {path} …"),
            (None, _) => String::new(),
        }
    }

    /// How old what is not on the screen may be, if that is not seen by each look.
    pub(crate) fn stale(&self) -> Option<Duration> {
        // A look takes its time, too.
        self.age.filter(|age| *age > self.interval.saturating_mul(3) + Duration::from_secs(1))
    }

    /// The line for the outcome of the last key and for what is wrong.
    pub(crate) fn foot(&self) -> String {
        if self.is_filtering {
            return format!("filter: {}", self.list.filter());
        }
        let message = (!self.message.is_empty()).then(|| self.message.clone()).or_else(|| self.list.hint());
        message.into_iter().chain(self.trouble.clone()).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn list(&self) -> &List {
        &self.list
    }

    /// The rows on the screen, and the index of the selected one among them.
    pub(crate) fn visible(&self) -> (&[Row], Option<usize>) {
        self.list.visible(self.height)
    }

    /// What has to be read for the screen.
    pub(crate) fn wanted(&self) -> Wanted {
        let visible = match self.view {
            View::List => self.visible().0.iter().map(|row| row.path.clone()).collect(),
            _ => Vec::new(),
        };
        Wanted {
            visible,
            page: self.opened().map(|path| (path.clone(), self.opening)),
            keys: self.keys,
            acts: self.acts,
        }
    }

    /// The screen has this number of lines for a list.
    pub(crate) fn set_height(&mut self, height: usize) {
        self.height = height;
        self.list.keep_in_view(height);
    }

    /// The first line to show of a page of so many lines, of which the screen shows `height`.
    pub(crate) fn scroll(&mut self, lines: usize, height: usize) -> usize {
        self.height = height;
        self.scroll = self.scroll.min(lines.saturating_sub(height));
        self.scroll
    }

    /// `is_whole` says whether the screen shows all of a question.
    pub(crate) fn on_key(&mut self, key: Key, is_whole: bool) -> Action {
        self.message.clear();
        self.keys += 1;
        if self.asking.take().is_some() {
            self.message = "nothing was done".to_owned();
        }
        if self.is_filtering && self.on_text(key) {
            return Action::Nothing;
        }
        match (key.in_list_or_page(), &self.view) {
            (Key::Suspend, _) => Action::Suspend,
            (Key::Interrupt, _) => Action::Quit,
            (Key::Move(to), View::List) => {
                self.list.go(to, self.height);
                Action::Nothing
            }
            (Key::Move(to), _) => {
                self.scroll = to.from(self.scroll, self.height);
                Action::Nothing
            }
            (key, View::Confirm(..)) => self.answer(key, is_whole),
            (_, View::Help) => {
                self.show(View::List);
                Action::Nothing
            }
            (key, _) => self.on_command(key),
        }
    }

    /// A key while the filter is typed. Returns whether it was one for its text.
    fn on_text(&mut self, key: Key) -> bool {
        let mut text = self.list.filter().to_owned();
        match key {
            Key::Char(c) => text.push(c),
            Key::Erase => drop(text.pop()),
            Key::Enter => self.is_filtering = false,
            Key::Back => {
                self.is_filtering = false;
                text.clear();
            }
            _ => return false,
        }
        self.list.set_filter(text);
        true
    }

    fn on_command(&mut self, key: Key) -> Action {
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('w') => self.list.sort_by(Sort::Waiters),
            Key::Char('a') => self.list.sort_by(Sort::Age),
            Key::Char('r') => self.list.sort_by(Sort::Rate),
            Key::Char('p') => self.list.sort_by(Sort::Path),
            Key::Enter if self.view == View::List => {
                if let Some(path) = self.list.selected_path() {
                    (self.page, self.opening) = (None, self.keys);
                    self.show(View::Inspect(path));
                }
            }
            Key::Back if self.view == View::List => self.list.set_filter(String::new()),
            Key::Back => self.show(View::List),
            Key::Char('/') if self.view == View::List => self.is_filtering = true,
            Key::Char('?' | 'h') => self.show(View::Help),
            Key::Char('v') => return self.ask(Act::Ask),
            Key::Char('x') => return self.ask(Act::Release),
            _ => {}
        }
        Action::Nothing
    }

    pub(super) fn show(&mut self, view: View) {
        self.view = view;
        self.scroll = 0;
    }
}
