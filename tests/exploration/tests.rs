//! An exploration must be able to fail.

use super::{Extent, Model, Property, assert_caught, assert_right};

/// Counts up to this number, and must not count beyond ten.
#[derive(Clone)]
struct Count(u8);

impl Model for Count {
    type State = u8;
    type Action = ();

    fn init_states(&self) -> Vec<u8> {
        vec![0]
    }

    fn actions(&self, count: &u8, actions: &mut Vec<()>) {
        actions.extend((*count < self.0).then_some(()));
    }

    fn next_state(&self, count: &u8, (): ()) -> Option<u8> {
        Some(count + 1)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("not beyond ten", |_, count| *count <= 10)]
    }
}

#[test]
#[should_panic(expected = "eleven: Some((\"not beyond ten\"")]
fn a_broken_property_is_a_failure() {
    assert_right("eleven", &Count(11), Extent::usual(), 0);
}

#[test]
#[should_panic(expected = "ten was not caught")]
fn a_mistake_that_breaks_nothing_is_a_failure() {
    assert_caught("ten", &Count(9), &Count(10));
}

#[test]
#[should_panic(expected = "breaks a rule without twelve")]
fn a_property_that_breaks_without_the_mistake_is_a_failure() {
    assert_caught("twelve", &Count(11), &Count(12));
}
