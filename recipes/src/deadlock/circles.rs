//! The circles of stuck actors: pure.

use super::graph::{At, Blockers, Graph, Stuck};

/// A circle: each actor's wait, and the waits of actors that are stuck behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) waits: Vec<(At, Blockers)>,
    /// The nodes of other actors that wait for an actor of the circle, or for one that does.
    pub(super) behind: Vec<At>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    New,
    OnPath,
    /// In the circle of this number, or behind it.
    Done(usize),
}

/// Every stuck actor waits for stuck actors only. It follows the first of them: the holder, where there is
/// one. So each actor is in one circle, or behind one.
pub(super) fn circles(graph: &Graph, stuck: &Stuck) -> Vec<Circle> {
    let mut waits: Vec<Option<(At, Blockers)>> = vec![None; graph.actors];
    let mut others: Vec<(usize, At)> = Vec::new();
    for (at, blockers) in graph.waits(stuck) {
        let Some(actor) = graph.node(at).map(|node| node.actor) else { continue };
        match waits.get_mut(actor) {
            Some(wait @ None) => *wait = Some((at, blockers)),
            _ => others.push((actor, at)),
        }
    }
    let next: Vec<Option<usize>> = waits
        .iter()
        .map(|wait| wait.as_ref().and_then(|(at, blockers)| graph.first_actor(at.0, blockers)))
        .collect();
    let (members, colours) = walk(&next);
    let mut circles: Vec<Circle> = members.iter().map(|_| Circle::default()).collect();
    for (circle, members) in circles.iter_mut().zip(&members) {
        circle.waits = members.iter().filter_map(|actor| waits.get(*actor).cloned().flatten()).collect();
    }
    let first_waits = waits.iter().enumerate().filter_map(|(actor, wait)| Some((actor, wait.as_ref()?.0)));
    for (actor, at) in first_waits.chain(others) {
        let Some(Colour::Done(number)) = colours.get(actor) else { continue };
        let Some(circle) = circles.get_mut(*number) else { continue };
        if circle.waits.iter().all(|(in_circle, _)| *in_circle != at) {
            circle.behind.push(at);
        }
    }
    circles
}

/// The circles of a graph in which each actor has one successor, and the circle that each actor leads to.
fn walk(next: &[Option<usize>]) -> (Vec<Vec<usize>>, Vec<Colour>) {
    let mut colours = vec![Colour::New; next.len()];
    let mut circles: Vec<Vec<usize>> = Vec::new();
    for start in 0..next.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        let circle = loop {
            let Some(actor) = at else { break None };
            match colours.get_mut(actor) {
                Some(colour @ Colour::New) => *colour = Colour::OnPath,
                Some(Colour::OnPath) => {
                    let begin = path.iter().position(|on_path| *on_path == actor);
                    circles.push(path.get(begin.unwrap_or_default()..).unwrap_or_default().to_vec());
                    break Some(circles.len() - 1);
                }
                Some(Colour::Done(number)) => break Some(*number),
                None => break None,
            }
            path.push(actor);
            at = next.get(actor).copied().flatten();
        };
        for actor in path {
            if let Some(colour) = colours.get_mut(actor) {
                *colour = circle.map_or(Colour::Done(usize::MAX), Colour::Done);
            }
        }
    }
    (circles, colours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_meet_are_no_circle_and_lead_to_one() {
        // 0 and 1 wait for 2, which waits for 3; 3 and 4 wait for each other; 5 waits for itself.
        let (circles, colours) = walk(&[Some(2), Some(2), Some(3), Some(4), Some(3), Some(5), None]);
        assert_eq!(circles, [vec![3, 4], vec![5]]);
        assert_eq!(colours[..5], [Colour::Done(0); 5]);
        assert_eq!(colours[5..], [Colour::Done(1), Colour::Done(usize::MAX)]);
    }
}
