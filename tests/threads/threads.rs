//! Every interleaving of the threads that share the locks and flags of a session.

use lockkeeper_threads::models;

#[test]
fn work_that_a_parked_task_is_notified_of_is_found() {
    models::work_that_is_notified_of_is_found();
}

#[test]
#[should_panic(expected = "asleep")]
fn a_task_that_parks_too_late_is_caught() {
    models::work_that_is_looked_for_before_parking_is_missed();
}

#[test]
fn watches_stay_within_their_budget() {
    models::watches_stay_within_their_budget();
}

#[test]
fn a_loss_is_reported_once() {
    models::a_loss_is_reported_once();
}

#[test]
fn a_holder_that_gives_up_hears_of_a_loss_at_most_once() {
    models::a_holder_that_gives_up_hears_of_a_loss_at_most_once();
}

#[test]
fn a_held_node_has_the_expirations_and_the_instant_of_a_grant() {
    models::a_held_node_has_the_expirations_and_the_instant_of_a_grant();
}

#[test]
fn a_node_is_handed_off_only_behind_the_answers_to_its_transactions() {
    models::a_node_is_handed_off_only_behind_the_answers_to_its_transactions();
}

#[test]
fn a_node_that_a_transaction_may_have_replaced_never_reads_as_deleted_by_another_client() {
    models::a_node_that_a_transaction_may_have_replaced_never_reads_as_deleted_by_another_client();
}

#[test]
fn a_node_that_is_registered_while_the_session_ends_hears_of_it_once() {
    models::a_node_that_is_registered_while_the_session_ends_hears_of_it_once();
}

#[test]
fn a_watch_that_others_read_wakes_its_waiter() {
    models::a_watch_that_others_read_wakes_its_waiter();
}

#[test]
fn a_watch_of_which_a_clone_is_dropped_wakes_its_waiter() {
    models::a_watch_of_which_a_clone_is_dropped_wakes_its_waiter();
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_watch_that_is_read_with_another_waker_is_caught() {
    models::a_watch_that_is_read_with_another_waker_is_missed();
}
