//! The screen.

use lockkeeper::inspect::ContenderInfo;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, HighlightSpacing, Paragraph, Row as TableRow, Table, TableState};

use super::columns::{self, shortened};
use super::row::{Row, Sort};
use super::state::{Act, State, View};
use super::words::{COLUMNS, cells, head, headline, partial};
use crate::act::{meaning, request};
use crate::escape::printable;
use crate::inspect::print::age;

const KEYS: &str = "? help  / filter  enter inspect  v ask to release  x take away  q quit";

const HELP: &str = "\
lockkeeper top: the locks below a root, read again and again

up down k j              select a lock; scroll a page
page up, page down, b, space, home, end, g, G    the same by screens, and to both ends
w a r p                  sort by waiters, age, rate of new contenders, path
/                        show only locks with a text in the path or the holder; esc shows all
enter                    the table of the selected lock: all who hold and wait
esc                      back to the list
v, then y                ask its holders to release: it stops the program of a command lockkeeper
x, then y                take the lock away from its holders, while they may still be working
ctrl-z                   stop the job; fg continues it
q ctrl-c                 end

AGE is the age of the first holder's node, its wait included. HELD is for how long it was seen to hold,
with > if that may be longer. NEW/S counts new contenders a second.
What is on the screen is read at each look. Of the rest some is, the oldest first: --background says
how many, and the first line how old it may be. Nothing is written, except by v and x.

any other key goes back to the list";

/// Marks the selected row.
const MARK: &str = "> ";

/// Draws everything, and returns whether a question is shown whole.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) -> bool {
    let [head, body, foot, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let mut is_whole = true;
    match &state.view {
        View::List => list(frame, body, state),
        View::Inspect(_) => {
            let lines = state.page();
            page(frame, body, state, lines.lines().map(|line| Line::raw(printable(line))).collect());
        }
        View::Help => {
            page(frame, body, state, wrapped(HELP, body.width));
        }
        View::Confirm(act, path, chosen) => {
            let (title, text) = question(*act, path.as_str(), chosen);
            let block = Block::bordered().title(title);
            let inner = block.inner(body);
            frame.render_widget(block, body);
            is_whole = page(frame, inner, state, wrapped(&text, inner.width));
        }
    }
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(title(state), bold), head);
    frame.render_widget(Line::raw(printable(&state.foot())), foot);
    frame.render_widget(Line::raw(KEYS), keys);
    is_whole
}

fn list(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    // A line for the names of the columns.
    state.set_height(usize::from(area.height.saturating_sub(1)));
    let (rows, selected) = state.visible();
    let mut place = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table(rows, state.list().sort(), usize::from(area.width)), area, &mut place);
}

/// Draws the part of a page that was scrolled to, and returns whether that is all of it.
fn page(frame: &mut Frame<'_>, area: Rect, state: &mut State, lines: Vec<Line<'_>>) -> bool {
    let height = usize::from(area.height);
    let first = state.scroll(lines.len(), height);
    let is_whole = lines.len() <= height && area.width > 0;
    let shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(height).collect();
    frame.render_widget(Paragraph::new(shown), area);
    is_whole
}

/// The action of the key y, with its lock and holders.
fn question(act: Act, path: &str, chosen: &[ContenderInfo]) -> (&'static str, String) {
    let (title, text) = match act {
        Act::Ask => ("ask to release?", request(path, chosen)),
        Act::Release => ("take the lock away?", meaning(path, chosen)),
    };
    (title, format!("{text}\n\ny to continue, any other key to go back"))
}

/// Lines of at most this width. No character is left out.
fn wrapped(text: &str, width: u16) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut part = String::new();
        for c in printable(line).chars() {
            part.push(c);
            if Span::raw(&part).width() > usize::from(width) {
                part.pop();
                lines.push(Line::raw(std::mem::replace(&mut part, c.to_string())));
            }
        }
        lines.push(Line::raw(part));
    }
    lines
}

/// The first line.
fn title(state: &State) -> String {
    let list = state.list();
    let filter = (!list.filter().is_empty()).then(|| format!("with {:?}", list.filter()));
    let stale = state.stale().map(|old| format!("those not shown up to {} old", age(old)));
    let more: Vec<String> = filter.into_iter().chain(stale).chain(partial(state.partial.as_ref())).collect();
    headline(&state.root, list.rows(), list.hidden(), list.sort(), &more)
}

/// The rows in a table of this width.
fn table(rows: &[Row], sort: Sort, width: usize) -> Table<'static> {
    let head = head(sort);
    let rows: Vec<[String; COLUMNS]> = rows.iter().map(cells).collect();
    let needed: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = std::iter::once(&head).chain(&rows).filter_map(|row| row.get(column));
        cells.map(|cell| columns::width(cell)).max().unwrap_or_default()
    });
    let [path, recipe, waiting, age, held, rate, holder] = needed;
    let spaces = MARK.len() + (COLUMNS - 1) * columns::SPACE;
    let left = width.saturating_sub(spaces + recipe + waiting + age + held + rate);
    let (path, holder) = columns::shared(left, path, holder);
    let widths = [path, recipe, waiting, age, held, rate, holder];
    let row = |cells: &[String; COLUMNS]| {
        let [path_cell, recipe, waiting, age, held, rate, holder_cell] = cells.clone();
        let shown =
            [shortened(&path_cell, path), recipe, waiting, age, held, rate, shortened(&holder_cell, holder)];
        TableRow::new(shown)
    };
    let lengths = widths.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    Table::new(rows.iter().map(row), lengths)
        .column_spacing(u16::try_from(columns::SPACE).unwrap_or(1))
        .header(row(&head).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(MARK)
        .highlight_spacing(HighlightSpacing::Always)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn a_text_is_wrapped_without_the_loss_of_a_character() {
        let shown = |width| -> Vec<String> {
            wrapped("abcdef\n\ng\u{202e}漢字", width).iter().map(Line::to_string).collect()
        };
        assert_eq!(shown(4), ["abcd", "ef", "", "g\\u{", "202e", "}漢", "字"]);
        assert_eq!(shown(80).len(), 3);
    }

    #[test]
    fn a_question_is_whole_only_on_a_screen_that_is_large_enough() {
        let mut state = State::new("/", Sort::Waiters, std::time::Duration::ZERO);
        let path = format!("/{}a", "long/".repeat(40)).parse().unwrap();
        state.view = View::Confirm(Act::Ask, path, Vec::new());
        for (width, height, expected) in [(120, 24, true), (120, 8, false), (20, 24, false), (2, 24, false)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut is_whole = None;
            terminal.draw(|frame| is_whole = Some(draw(frame, &mut state))).unwrap();
            assert_eq!(is_whole, Some(expected), "{width}x{height}");
            let shown = terminal.backend().to_string();
            assert!(!expected || shown.contains("y to continue"), "{shown}");
        }
    }
}
