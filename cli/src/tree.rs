//! `tree`: every lock, election, group and work queue below a root.

use std::collections::BTreeMap;

use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use lockkeeper::inspect::{Survey, SurveyGroup, SurveyQueue};
use lockkeeper::{ConnectionManager, Error, Inspection};

use crate::connection::ConnectionOptions;
use crate::escape::printable;
use crate::exit::{Exit, Failure};
use crate::inspect::held::{Holds, holds};
use crate::inspect::print::{age, name};
use crate::inspect::{Format, json, parse_path};
use crate::output::{say, warn};
use crate::partial::{NODES, partial};
use crate::width::{padded, width};

#[derive(Debug, Args)]
pub(crate) struct TreeOptions {
    /// The path below which to look; / for everything
    root: String,

    /// A tree for people, or one line of JSON for each lock and group
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// The greatest number of nodes to read besides those of the contenders and empty directories
    #[arg(long, value_name = "N", default_value_t = NODES)]
    nodes: usize,
}

pub(crate) async fn tree(connection: &ConnectionOptions, options: TreeOptions) -> Result<Exit, Failure> {
    let root = parse_path(&options.root)?;
    connection
        .with_session(async |manager| {
            let survey = Survey::below_with(manager, &root, options.nodes).await?;
            let partial = partial(&survey, options.nodes);
            let held = held(manager, &survey).await?;
            match options.output {
                Format::Json => {
                    for (lock, holds) in survey.locks().iter().zip(&held) {
                        say(&json::line(lock.path(), Some(lock), None, holds))?;
                    }
                    for group in survey.groups() {
                        say(&json::group_line(group))?;
                    }
                    for queue in survey.queues() {
                        say(&json::queue_count_line(queue))?;
                    }
                }
                Format::Table => say(&render(root.as_str(), &survey, &held, partial.as_deref()))?,
            }
            if let (Format::Json, Some(why)) = (options.output, partial) {
                warn(format_args!("PARTIAL: {why}"));
            }
            Ok(Exit::SUCCESS)
        })
        .await
}

/// The columns beside the names.
const CELLS: usize = 5;

/// How many directories are read at a time.
const IN_FLIGHT: usize = 64;

/// A name of the tree, with its row and what is below it.
#[derive(Debug, Default)]
struct Branch {
    row: Option<[String; CELLS]>,
    below: BTreeMap<String, Self>,
}

fn render(root: &str, survey: &Survey, held: &[Holds], partial: Option<&str>) -> String {
    if survey.locks().is_empty() && survey.groups().is_empty() && survey.queues().is_empty() {
        return match partial {
            None => format!("{root}: no contender and no group"),
            Some(why) => format!("{root}: no contender and no group was seen, PARTIAL: {why}"),
        };
    }
    let locks = survey.locks().iter().zip(held);
    let locks = locks.map(|(lock, holds)| (lock.path().as_str(), lock_row(lock, holds)));
    let groups = survey.groups().iter().map(|group| (group.path().as_str(), group_row(group)));
    let queues = survey.queues().iter().map(|queue| (queue.path().as_str(), queue_row(queue)));
    let tree = render_rows(root, locks.chain(groups).chain(queues));
    match partial {
        None => tree,
        Some(why) => format!("{tree}\nPARTIAL: {why}"),
    }
}

/// For how long the holders of each lock have held, as far as that is known.
async fn held(manager: &ConnectionManager, survey: &Survey) -> Result<Vec<Holds>, Error> {
    let reads = stream::iter(survey.locks()).map(|lock| holds(manager, lock)).buffered(IN_FLIGHT);
    reads.try_collect().await
}

/// The recipe, the holder, the age of its node and for how long it has held, and the waiters.
fn lock_row(lock: &Inspection, holds: &Holds) -> [String; CELLS] {
    let mut holders = lock.holders();
    let first = holders.next();
    let more = match holders.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let holder = first.map_or_else(|| "free".to_owned(), |holder| format!("{}{more}", name(holder)));
    let recipe = match lock.limit() {
        Some(limit) => format!("{} {}/{limit}", lock.recipe(), lock.holders().count()),
        None => lock.recipe().to_owned(),
    };
    let waiting = match lock.waiters().count() {
        0 => String::new(),
        waiting => format!("{waiting} waiting"),
    };
    let old = first.map_or_else(String::new, |holder| age(holder.age()));
    let held = first.and_then(|holder| holds.get(&holder.czxid()));
    let held = held.map_or_else(String::new, |held| format!("held {held}"));
    [recipe, holder, old, held, waiting]
}

fn group_row(group: &SurveyGroup) -> [String; CELLS] {
    let names: Vec<&str> = group.members().iter().take(3).map(lockkeeper::inspect::NodeInfo::name).collect();
    let dots = if group.members().len() > names.len() { ", …" } else { "" };
    let names = format!("{}{dots}", names.join(", "));
    let members = format!("{} members", group.members().len());
    ["group".to_owned(), printable(&names), String::new(), String::new(), members]
}

fn queue_row(queue: &SurveyQueue) -> [String; CELLS] {
    let failed = match queue.failed_count() {
        0 => String::new(),
        failed => format!("{failed} failed"),
    };
    let items = format!("{} items", queue.item_count());
    ["work queue".to_owned(), items, String::new(), String::new(), failed]
}

fn render_rows<'a>(root: &str, rows: impl Iterator<Item = (&'a str, [String; CELLS])>) -> String {
    let mut tree = Branch::default();
    for (path, row) in rows {
        let below = path.strip_prefix(root).unwrap_or(path);
        let parts = below.split('/').filter(|part| !part.is_empty());
        let branch = parts.fold(&mut tree, |branch, part| branch.below.entry(printable(part)).or_default());
        // A directory may have both contenders and members: the contenders are what people look for.
        branch.row.get_or_insert(row);
    }
    let mut lines = vec![(root.to_owned(), tree.row.clone())];
    add_lines(&tree, "", &mut lines);
    align(&lines)
}

fn add_lines(branch: &Branch, indent: &str, lines: &mut Vec<(String, Option<[String; CELLS]>)>) {
    let last = branch.below.len().saturating_sub(1);
    for (index, (name, below)) in branch.below.iter().enumerate() {
        let (fork, line) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.push((format!("{indent}{fork}{name}"), below.row.clone()));
        add_lines(below, &format!("{indent}{line}"), lines);
    }
}

/// The columns below each other.
fn align(lines: &[(String, Option<[String; CELLS]>)]) -> String {
    let widest =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| width(text)).max().unwrap_or_default();
    let names = widest(&mut lines.iter().filter(|line| line.1.is_some()).map(|line| &line.0));
    let columns: Vec<usize> = (0..CELLS)
        .map(|column| widest(&mut lines.iter().filter_map(|line| line.1.as_ref()?.get(column))))
        .collect();
    let mut text = String::new();
    for (name, row) in lines {
        let mut line = name.clone();
        if let Some(row) = row {
            line = padded(name, names);
            for (cell, columns) in row.iter().zip(&columns) {
                line.push_str("  ");
                line.push_str(&padded(cell, *columns));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> [String; CELLS] {
        [text.to_owned(), String::new(), "1s".to_owned(), "held >0s".to_owned(), String::new()]
    }

    #[test]
    fn names_hang_below_each_other_and_columns_are_aligned() {
        let rows = [
            ("/shop/locks/a", row("mutex")),
            ("/shop/locks/long-name", row("election")),
            ("/shop/w", row("group")),
        ];
        let expected = "\
/shop
├─ locks
│  ├─ a          mutex       1s  held >0s
│  └─ long-name  election    1s  held >0s
└─ w             group       1s  held >0s";
        assert_eq!(render_rows("/shop", rows.into_iter()), expected);
    }

    #[test]
    fn a_name_of_wide_characters_moves_no_column() {
        let rows = [("/shop/列車", row("mutex")), ("/shop/train", row("mutex"))];
        let expected = "\
/shop
├─ train  mutex    1s  held >0s
└─ 列車   mutex    1s  held >0s";
        assert_eq!(render_rows("/shop", rows.into_iter()), expected);
    }

    #[test]
    fn the_root_may_be_a_lock_and_may_be_the_root_of_all() {
        assert_eq!(render_rows("/a", [("/a", row("mutex"))].into_iter()), "/a  mutex    1s  held >0s");
        assert_eq!(
            render_rows("/", [("/a/b", row("mutex"))].into_iter()),
            "/\n└─ a\n   └─ b  mutex    1s  held >0s"
        );
    }
}
