//! Two recipes on one path.

use super::{LOCK, behind, judge, queue_of};
use crate::local::decide::{ContenderKind, Judgement};
use crate::znode::name::Label;

#[test]
fn the_sequence_number_of_another_recipe_on_the_same_path_tells_nothing() {
    let turnstile = ContenderKind::Lock(Label::new("turn-").unwrap().kind());
    let mut queue = queue_of(&[turnstile]);
    assert_eq!(judge(&mut queue, 1, turnstile), behind(0, true));
    assert_eq!(judge(&mut queue, 1, LOCK), Judgement::Unknown, "a list finds the conflict");
}
