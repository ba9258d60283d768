//! The screen.

use lockkeeper::inspect::ContenderInfo;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row as TableRow, Table, TableState};

use super::row::{Row, Sort};
use super::state::{Act, State, View};
use crate::act::{meaning, request};
use crate::inspect::print::age;
use crate::output::printable;

const KEYS: &str =
    "up/down select  w a r p sort  enter inspect  v ask to release  x take away  esc back  q quit";

/// Draws everything, and returns whether a question is shown whole.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State) -> bool {
    let [head, body, foot, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(headline(state), bold), head);
    let mut is_whole = true;
    match &state.view {
        View::List => {
            let mut place = TableState::new().with_selected(state.selected());
            frame.render_stateful_widget(table(state), body, &mut place);
        }
        View::Inspect => {
            let text = state.selected_row().map(|row| format!("{:#}", row.lock)).unwrap_or_default();
            let lines: Vec<Line<'_>> = text.lines().map(|line| Line::raw(printable(line))).collect();
            frame.render_widget(Paragraph::new(lines), body);
        }
        View::Confirm(act, path, chosen) => {
            let (title, text) = question(*act, path, chosen);
            let block = Block::bordered().title(title);
            let inner = block.inner(body);
            let lines = wrapped(&text, inner.width);
            is_whole = lines.len() <= usize::from(inner.height) && inner.width > 0;
            frame.render_widget(Paragraph::new(lines).block(block), body);
        }
    }
    frame.render_widget(Line::raw(printable(&state.foot())), foot);
    frame.render_widget(Line::raw(KEYS), keys);
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

fn headline(state: &State) -> String {
    let waiting: usize = state.rows().iter().map(|row| row.waiting).sum();
    let partial = state.partial.as_ref().map_or_else(String::new, |why| format!(", PARTIAL: {why}"));
    let (locks, by) = (state.rows().len(), state.sort.word());
    printable(&format!("lockkeeper top {}: {locks} locks, {waiting} waiting, by {by}{partial}", state.root))
}

fn table(state: &State) -> Table<'_> {
    let mark = |sort: Sort, text: &str| {
        Cell::from(if sort == state.sort { format!("{text}*") } else { text.to_owned() })
    };
    let head = TableRow::new([
        mark(Sort::Path, "PATH"),
        Cell::from("RECIPE"),
        mark(Sort::Waiters, "WAITING"),
        mark(Sort::Age, "AGE"),
        mark(Sort::Rate, "NEW/S"),
        Cell::from("HOLDER"),
    ]);
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(16),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Fill(3),
    ];
    Table::new(state.rows().iter().map(row), widths)
        .header(head.style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol("> ")
}

fn row(row: &Row) -> TableRow<'_> {
    TableRow::new([
        printable(row.lock.path().as_str()),
        row.lock.recipe().to_owned(),
        row.waiting.to_string(),
        row.age.map_or_else(|| "-".to_owned(), age),
        row.rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
        printable(&row.holder),
    ])
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
        let mut state = State::new("/", 10);
        state.view = View::Confirm(Act::Ask, format!("/{}", "long/".repeat(40)), Vec::new());
        for (width, height, expected) in [(120, 24, true), (120, 8, false), (20, 24, false), (2, 24, false)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut is_whole = None;
            terminal.draw(|frame| is_whole = Some(draw(frame, &state))).unwrap();
            assert_eq!(is_whole, Some(expected), "{width}x{height}");
            let shown = terminal.backend().to_string();
            assert!(!expected || shown.contains("y to continue"), "{shown}");
        }
    }
}
