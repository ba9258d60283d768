//! What a survey did not see: a verdict that rests on it says so on its own line.

use lockkeeper::inspect::Survey;
use lockkeeper::{Inspection, ZnodePath};

use crate::escape::printable;

/// The number of paths that are named.
const NAMED_MAX: usize = 3;

/// The number of nodes that a look reads, unless another one is given.
pub(crate) const NODES: usize = 10_000;

/// Why the survey, with this limit of nodes, does not show all. `None` if it does.
pub(crate) fn partial(survey: &Survey, nodes: usize) -> Option<String> {
    partial_of(survey.is_partial(), survey.unread().iter(), nodes)
}

/// The same of a look that was cut at this limit, and that may not read these directories.
pub(crate) fn partial_of<'a>(
    is_cut: bool,
    unread: impl Iterator<Item = &'a ZnodePath>,
    nodes: usize,
) -> Option<String> {
    let mut why = Vec::new();
    if is_cut {
        why.push(format!("only {nodes} nodes were read, name a lower root or raise --nodes"));
    }
    let unread: Vec<String> = unread.map(|path| printable(path.as_str())).collect();
    if !unread.is_empty() {
        why.push(format!("{} may not be read, give --auth of a user who may", named(&unread)));
    }
    said(&why)
}

/// The same, for who needs the data of the contenders as well: it names their owners.
pub(crate) fn partial_with_data(survey: &Survey, nodes: usize) -> Option<String> {
    let contenders = survey.locks().iter().flat_map(Inspection::contenders);
    let dumb: Vec<String> =
        contenders.filter(|of| of.data().is_none()).map(|of| printable(of.path())).collect();
    let mut why: Vec<String> = partial(survey, nodes).into_iter().collect();
    if !dumb.is_empty() {
        why.push(format!("the data of {} may not be read", named(&dumb)));
    }
    said(&why)
}

fn named(paths: &[String]) -> String {
    let shown = paths.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn said(why: &[String]) -> Option<String> {
    (!why.is_empty()).then(|| why.join("; "))
}
