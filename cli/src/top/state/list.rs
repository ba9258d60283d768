//! The list: its order, its selection, and the part of it that the screen shows.

use lockkeeper::ZnodePath;

use super::keys::Move;
use crate::top::row::{Row, Sort};

#[derive(Debug)]
pub(crate) struct List {
    all: Vec<Row>,
    /// Those that pass the filter, in order.
    rows: Vec<Row>,
    /// A text that the path or the holder of a lock has, in whatever case. Empty for all.
    filter: String,
    /// The path of the selected lock. It stays selected when its row has another place, and when it has none:
    /// a key never acts on a lock that the user has not selected.
    selected: Option<ZnodePath>,
    /// The last place of the selected row, where the selection moves on from when the row is gone.
    place: usize,
    /// The first row on the screen.
    offset: usize,
    sort: Sort,
}

impl List {
    pub(super) fn new(sort: Sort) -> Self {
        let (all, rows, filter) = (Vec::new(), Vec::new(), String::new());
        Self { all, rows, filter, selected: None, place: 0, offset: 0, sort }
    }

    pub(super) fn update(&mut self, rows: Vec<Row>) {
        self.all = rows;
        self.arrange();
        if self.selected.is_none() {
            self.select(0);
        }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The number of locks that the filter hides.
    pub(crate) fn hidden(&self) -> usize {
        self.all.len() - self.rows.len()
    }

    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.arrange();
    }

    pub(crate) fn sort(&self) -> Sort {
        self.sort
    }

    /// The rows that a screen of this height shows, and the index of the selected one among them.
    pub(super) fn visible(&self, height: usize) -> (&[Row], Option<usize>) {
        let end = self.offset.saturating_add(height).min(self.rows.len());
        let rows = self.rows.get(self.offset..end).unwrap_or_default();
        let selected = self.at().and_then(|at| at.checked_sub(self.offset));
        (rows, selected.filter(|at| *at < rows.len()))
    }

    /// The index of the selected row. `None` if the selected lock has no row.
    fn at(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.iter().position(|row| row.path == *selected)
    }

    /// The path of the selected lock, if it has a row.
    pub(super) fn selected_path(&self) -> Option<ZnodePath> {
        self.at().and_then(|_| self.selected.clone())
    }

    /// Why the selected lock has no row.
    pub(super) fn hint(&self) -> Option<String> {
        let selected = self.selected.as_ref().filter(|_| self.at().is_none())?;
        let why = match self.all.iter().any(|row| row.path == *selected) {
            true => "is hidden by the filter",
            false => "has no contender any more",
        };
        Some(format!("{selected} {why}; up and down select another lock"))
    }

    pub(super) fn sort_by(&mut self, sort: Sort) {
        self.sort = sort;
        self.arrange();
    }

    /// Selects another row. Without the selected one, the row below has its place.
    pub(super) fn go(&mut self, to: Move, height: usize) {
        let place = match self.at() {
            Some(at) => to.from(at, height),
            None if to == Move::Down => self.place,
            None => to.from(self.place, height),
        };
        self.select(place);
        self.keep_in_view(height);
    }

    fn select(&mut self, at: usize) {
        self.place = at.min(self.rows.len().saturating_sub(1));
        if let Some(row) = self.rows.get(self.place) {
            self.selected = Some(row.path.clone());
        }
    }

    fn arrange(&mut self) {
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let passes = |row: &&Row| filter.is_empty() || has(row.path.as_str()) || has(&row.holder);
        self.rows = self.all.iter().filter(passes).cloned().collect();
        self.sort.arrange(&mut self.rows);
        self.place = self.at().unwrap_or(self.place);
    }

    /// Moves the part that a screen of this height shows, so that it has the selected row, and no empty line
    /// below the last row.
    pub(super) fn keep_in_view(&mut self, height: usize) {
        let place = self.at().unwrap_or(self.place);
        let most = self.rows.len().saturating_sub(height);
        let least = place.saturating_add(1).saturating_sub(height);
        self.offset = self.offset.max(least).min(place).min(most);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn row(path: &str, waiting: usize) -> Row {
        Row {
            path: path.parse().unwrap(),
            recipe: "mutex",
            holder: format!("holder of {path}"),
            since: None,
            held: None,
            waiting,
            rate: None,
        }
    }

    fn list(rows: &[(&str, usize)]) -> List {
        let mut list = List::new(Sort::Waiters);
        list.update(rows.iter().map(|(path, waiting)| row(path, *waiting)).collect());
        list
    }

    fn paths(list: &List, height: usize) -> Vec<&str> {
        list.visible(height).0.iter().map(|row| row.path.as_str()).collect()
    }

    fn selected(list: &List) -> String {
        list.selected_path().map(|path| path.to_string()).unwrap_or_default()
    }

    #[test]
    fn rows_are_sorted_and_the_selection_stays_with_its_lock() {
        let mut list = list(&[("/a", 0), ("/b", 1)]);
        assert_eq!((paths(&list, 9), selected(&list).as_str()), (vec!["/b", "/a"], "/b"));
        list.go(Move::Down, 9);
        assert_eq!(selected(&list), "/a");
        list.sort_by(Sort::Path);
        assert_eq!((paths(&list, 9), list.visible(9).1), (vec!["/a", "/b"], Some(0)));
        list.go(Move::Up, 9);
        assert_eq!(selected(&list), "/a");
    }

    #[test]
    fn when_the_selected_lock_ends_no_other_one_is_selected() {
        let mut list = list(&[("/a", 0), ("/b", 1)]);
        list.update(vec![row("/a", 0)]);
        assert_eq!((list.selected_path(), list.visible(9).1), (None, None));
        assert!(list.hint().unwrap().contains("/b has no contender any more"));
        // It is selected again when somebody contends for it again.
        list.update(vec![row("/a", 0), row("/b", 1)]);
        assert_eq!((selected(&list).as_str(), list.hint()), ("/b", None));
        list.update(vec![row("/a", 0)]);
        list.go(Move::Down, 9);
        assert_eq!(selected(&list), "/a");
    }

    #[test]
    fn a_filter_hides_rows_and_selects_no_other_lock() {
        let mut list = list(&[("/a", 0), ("/tB", 0), ("/v", 0)]);
        list.set_filter("tb".to_owned());
        assert_eq!((paths(&list, 9), list.hidden()), (vec!["/tB"], 2));
        assert_eq!((list.selected_path(), list.visible(9).1), (None, None));
        assert!(list.hint().unwrap().contains("/a is hidden by the filter"));
        list.set_filter("HOLDER OF /v".to_owned());
        assert_eq!(paths(&list, 9), ["/v"]);
        list.set_filter(String::new());
        assert_eq!((selected(&list).as_str(), list.hint()), ("/a", None));
    }

    #[test]
    fn the_selected_row_is_on_the_screen_wherever_it_is() {
        let names: Vec<String> = (0..100).map(|number| format!("/{number:02}")).collect();
        let rows: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 0)).collect();
        let mut list = list(&rows);
        for (to, first, expected) in [
            (Move::Down, "/00", "/01"),
            (Move::PageDown, "/02", "/11"),
            (Move::PageDown, "/12", "/21"),
            (Move::Up, "/12", "/20"),
            (Move::Last, "/90", "/99"),
            (Move::Down, "/90", "/99"),
            (Move::PageUp, "/89", "/89"),
            (Move::First, "/00", "/00"),
        ] {
            list.go(to, 10);
            assert_eq!((paths(&list, 10)[0], selected(&list).as_str()), (first, expected), "{to:?}");
            assert_eq!(paths(&list, 10).len(), 10);
        }
        // A lower window.
        list.go(Move::PageDown, 10);
        list.keep_in_view(3);
        assert_eq!(paths(&list, 3), ["/08", "/09", "/10"]);
        list.keep_in_view(0);
        assert!(paths(&list, 0).is_empty());
    }
}
