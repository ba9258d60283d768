//! The screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row as TableRow, Table, TableState, Wrap};

use super::state::{Row, Sort, State, View};
use crate::act::meaning;
use crate::inspect::print::age;

const KEYS: &str =
    "up/down select  w a r p sort  enter inspect  v ask to release  x take away  esc back  q quit";

pub(crate) fn draw(frame: &mut Frame<'_>, state: &State) {
    let [head, body, foot, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(headline(state), bold), head);
    match &state.view {
        View::List => {
            let mut place = TableState::new().with_selected(state.selected());
            frame.render_stateful_widget(table(state), body, &mut place);
        }
        View::Inspect => {
            let text = state.selected_row().map(|row| format!("{:#}", row.lock)).unwrap_or_default();
            frame.render_widget(Paragraph::new(text), body);
        }
        View::Confirm(chosen) => {
            let text = format!("{}\n\ny to continue, any other key to go back", meaning(chosen));
            let block = Block::bordered().title("take the lock away?");
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), body);
        }
    }
    frame.render_widget(Line::raw(&state.message), foot);
    frame.render_widget(Line::raw(KEYS), keys);
}

fn headline(state: &State) -> String {
    let waiting: usize = state.rows().iter().map(|row| row.waiting).sum();
    format!(
        "lockkeeper top {}: {} locks, {waiting} waiting, by {}",
        state.root,
        state.rows().len(),
        state.sort.word()
    )
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
        row.lock.path().to_string(),
        row.lock.recipe().to_owned(),
        row.waiting.to_string(),
        row.age.map_or_else(|| "-".to_owned(), age),
        row.rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
        row.holder.clone(),
    ])
}
