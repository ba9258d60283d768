//! Which item a taker tries next, by what looks at the queue have read.

use std::collections::{BTreeMap, BTreeSet};

use super::super::candidates::{ItemCandidates, ListedShard, QueueLook};
use super::super::item_layout::ItemLayout;
use super::super::name::ItemName;
use super::super::shard_number::ShardNumber;

fn listed(names: &[String]) -> ListedShard {
    ListedShard { names: names.to_vec(), is_closed: false }
}

/// A look at a queue with one directory.
fn look(layout: ItemLayout, names: &[String], workers: &[&str], now: i64) -> ItemCandidates {
    let mut candidates = ItemCandidates::default();
    look_again(&mut candidates, layout, names, workers, now);
    candidates
}

fn look_again(
    candidates: &mut ItemCandidates,
    layout: ItemLayout,
    names: &[String],
    workers: &[&str],
    now: i64,
) {
    let lists = BTreeMap::from([(ShardNumber::FIRST, listed(names))]);
    let workers = workers.iter().map(|&worker| worker.to_owned()).collect();
    let living = BTreeSet::from([ShardNumber::FIRST]);
    candidates.looked(layout, QueueLook { living, lists, workers, now });
}

fn names(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|number| format!("100-{number:010}")).collect()
}

fn item(number: u32) -> ItemName {
    ItemLayout::Own.parse(&format!("100-{number:010}")).unwrap()
}

#[test]
fn one_taker_takes_the_first_item_first() {
    let mut candidates = ItemCandidates::default();
    assert_eq!(candidates.next(0), None);
    look_again(&mut candidates, ItemLayout::Own, &names(&[3, 1, 2]), &[], 0);
    assert_eq!([candidates.next(0), candidates.next(0)], [Some(item(1)), Some(item(2))]);
}

#[test]
fn an_item_is_skipped_as_long_as_the_node_of_its_worker_is_listed() {
    let mut candidates = ItemCandidates::default();
    candidates.met_claim(item(1), "a");
    look_again(&mut candidates, ItemLayout::Own, &names(&[1, 2]), &["a"], 0);
    assert_eq!(candidates.next(0), Some(item(2)));
    look_again(&mut candidates, ItemLayout::Own, &names(&[1, 2]), &["b"], 0);
    assert_eq!(candidates.next(0), Some(item(1)));
}

#[test]
fn a_worker_that_was_seen_before_a_later_look_claims_nothing() {
    let mut candidates = look(ItemLayout::Own, &names(&[1]), &[], 0);
    let (tried, looks) = (candidates.next(0).unwrap(), candidates.looks());
    look_again(&mut candidates, ItemLayout::Own, &names(&[1]), &[], 0);
    assert!(!candidates.met_claim_after(looks, &tried, "gone"));
    assert_eq!((candidates.next(0), candidates.pop(0)), (None, Some(item(1))), "the next take looks");
    assert!(candidates.met_claim_after(candidates.looks(), &item(1), "here"));
    assert!(candidates.has_worker("here") && candidates.pop(0).is_none());
}

#[test]
fn a_delayed_item_is_skipped_until_it_is_due() {
    let mut candidates = ItemCandidates::default();
    candidates.met_delay(item(1), 10);
    look_again(&mut candidates, ItemLayout::Own, &names(&[1, 2]), &[], 9);
    assert_eq!((candidates.next(0), candidates.next_due()), (Some(item(2)), Some(10)));
    look_again(&mut candidates, ItemLayout::Own, &names(&[1, 2]), &[], 10);
    assert_eq!((candidates.next(0), candidates.next_due()), (Some(item(1)), None));
}

#[test]
fn a_list_serves_takes_in_proportion_to_its_length() {
    for (length, takes) in [(1, 1), (8, 2), (800, 101)] {
        let mut candidates = look(ItemLayout::Own, &names(&(0..length).collect::<Vec<_>>()), &[], 0);
        let mut taken = 0;
        while let Some(item) = candidates.next(0) {
            candidates.taken(item, "a");
            taken += 1;
        }
        assert_eq!(taken, takes.min(length), "{length}");
    }
}

#[test]
fn after_a_collision_takes_go_on_among_the_first_items_and_later_at_the_first_again() {
    let mut candidates = look(ItemLayout::Own, &names(&(0..800).collect::<Vec<_>>()), &[], 0);
    assert_eq!(candidates.next(7), Some(item(0)));
    candidates.collided(&item(0));
    assert_eq!([5, 20, 2].map(|draw| candidates.next(draw).unwrap()), [item(6), item(5), item(3)]);
    candidates.collided(&item(6));
    let next = candidates.next(31).unwrap();
    assert!(item(16) < next && next < item(40), "{next}");
    for _ in 0..32 {
        candidates.taken(next.clone(), "a");
    }
    assert_eq!(candidates.next(usize::MAX), Some(item(1)));
}

#[test]
fn after_a_collision_no_item_of_a_greater_priority_is_passed_over() {
    let urgent = ["001-0000000007", "001-0000000009"].map(str::to_owned);
    let mut candidates = look(ItemLayout::Own, &[&urgent[..], &names(&[1, 2, 3])].concat(), &[], 0);
    candidates.collided(&item(8));
    let taken = [5, 5].map(|draw| candidates.pop(draw).unwrap().as_str().to_owned());
    assert_eq!(taken, [urgent[1].clone(), urgent[0].clone()]);
}

#[test]
fn the_next_look_is_the_sooner_the_more_takes_collide() {
    let mut candidates = look(ItemLayout::Own, &names(&(0..800).collect::<Vec<_>>()), &[], 0);
    let mut collisions = 0;
    while let Some(item) = candidates.next(0) {
        candidates.collided(&item);
        collisions += 1;
    }
    assert_eq!(collisions, 13);
}

#[test]
fn an_item_that_is_claimed_by_a_node_of_its_name_is_skipped() {
    let items = ["queue-0000000001", "queue-0000000002"].map(str::to_owned);
    let mut candidates = look(ItemLayout::Curator, &items, &[&items[0], "workers"], 0);
    assert_eq!(candidates.next(0).as_ref().map(ItemName::as_str), Some("queue-0000000002"));
    look_again(&mut candidates, ItemLayout::Curator, &items, &[], 0);
    assert_eq!(candidates.next(0).as_ref().map(ItemName::as_str), Some("queue-0000000001"));
}

#[test]
fn an_item_with_a_time_in_its_name_is_skipped_until_it_is_due() {
    let items = ["queue-|0000000A|0000000001".to_owned()];
    let mut candidates = look(ItemLayout::CuratorDelay, &items, &[], 9);
    assert_eq!((candidates.next(0), candidates.next_due()), (None, Some(10)));
    look_again(&mut candidates, ItemLayout::CuratorDelay, &items, &[], 10);
    assert!(candidates.next(0).is_some());
}

fn shard(number: u32) -> ShardNumber {
    (0..number).fold(ShardNumber::FIRST, |shard, _| shard.next().unwrap())
}

/// A look that reads these lists; the last shard that lives is the open one.
fn look_at(
    candidates: &mut ItemCandidates,
    living: std::ops::RangeInclusive<u32>,
    lists: &[(u32, &[&str])],
    workers: &[&str],
) {
    let last = *living.end();
    let lists = lists.iter().map(|(number, names)| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        (shard(*number), ListedShard { names, is_closed: *number != last })
    });
    let workers = workers.iter().map(|&worker| worker.to_owned()).collect();
    let living = living.map(shard).collect();
    candidates.looked(ItemLayout::Own, QueueLook { living, lists: lists.collect(), workers, now: 0 });
}

/// What one taker takes and does, by looks that it has already.
fn drain(candidates: &mut ItemCandidates) -> Vec<String> {
    let mut taken = Vec::new();
    while let Some(item) = candidates.pop(0) {
        taken.push(format!("{}/{item}", item.shard().name()));
        candidates.taken(item.clone(), "me");
        candidates.ended(&item);
    }
    taken
}

#[test]
fn items_are_tried_by_priority_then_shard_then_number() {
    let mut candidates = ItemCandidates::default();
    let lists: [(u32, &[&str]); 2] =
        [(0, &["100-0000000009", "100-0000000008"]), (1, &["100-0000000000", "050-0000000001"])];
    look_at(&mut candidates, 0..=1, &lists, &[]);
    let order = [
        "items-0000000001/050-0000000001",
        "items/100-0000000008",
        "items/100-0000000009",
        "items-0000000001/100-0000000000",
    ];
    assert_eq!(drain(&mut candidates), order);
}

#[test]
fn the_list_of_a_closed_shard_is_kept_and_that_of_an_open_one_is_not() {
    let mut candidates = ItemCandidates::default();
    assert_eq!(candidates.to_list(), BTreeSet::from([shard(0)]));
    let names: Vec<String> = names(&(0..20).collect::<Vec<_>>());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    look_at(&mut candidates, 0..=1, &[(0, &names), (1, &["100-0000000001"])], &[]);
    assert_eq!(candidates.to_list(), BTreeSet::from([shard(1)]));
    // It has served as many takes as a list of twenty should.
    for _ in 0..3 {
        let item = candidates.pop(0).unwrap();
        candidates.taken(item.clone(), "a");
        candidates.ended(&item);
    }
    assert_eq!(candidates.to_list(), BTreeSet::from([shard(0), shard(1)]));
    look_at(&mut candidates, 0..=1, &[(0, &[]), (1, &["100-0000000001"])], &[]);
    assert_eq!(candidates.to_list(), BTreeSet::from([shard(1)]), "an empty one stays empty");
}

#[test]
fn an_item_of_a_kept_list_is_tried_again_when_its_claim_ends_and_not_when_it_is_done() {
    let mut candidates = ItemCandidates::default();
    let lists: [(u32, &[&str]); 2] = [(0, &["100-0000000001", "100-0000000002", "100-0000000003"]), (1, &[])];
    look_at(&mut candidates, 0..=1, &lists, &["a", "b"]);
    for worker in ["a", "b"] {
        let item = candidates.pop(0).unwrap();
        candidates.taken(item, worker);
    }
    candidates.ended(&item(2));
    look_at(&mut candidates, 0..=1, &[(1, &[])], &["b"]);
    assert_eq!(drain(&mut candidates), ["items/100-0000000001", "items/100-0000000003"]);
    // The end of a worker says nothing about an item that is done.
    look_at(&mut candidates, 0..=1, &[(1, &[])], &[]);
    assert!(drain(&mut candidates).is_empty());
}

#[test]
fn an_item_whose_try_was_given_up_is_tried_again_after_the_next_look() {
    let mut candidates = ItemCandidates::default();
    look_at(&mut candidates, 0..=1, &[(0, &["100-0000000001"]), (1, &[])], &[]);
    assert_eq!((candidates.pop(0), candidates.pop(0)), (Some(item(1)), None));
    look_at(&mut candidates, 0..=1, &[(1, &[])], &[]);
    assert_eq!(candidates.pop(0), Some(item(1)));
}

#[test]
fn a_shard_that_does_not_exist_any_more_has_no_items() {
    let mut candidates = ItemCandidates::default();
    look_at(&mut candidates, 1..=2, &[(1, &["100-0000000001"]), (2, &["100-0000000002"])], &[]);
    candidates.met_delay(item(3).in_shard(shard(1)), 9);
    look_at(&mut candidates, 2..=2, &[(2, &["100-0000000002"])], &[]);
    assert_eq!(drain(&mut candidates), ["items-0000000002/100-0000000002"]);
    assert_eq!(candidates.next_due(), None);
}

#[test]
fn what_is_drawn_ahead_is_tried_next_unless_it_is_gone_or_behind_another_priority() {
    let mut candidates = look(ItemLayout::Own, &names(&(0..100).collect::<Vec<_>>()), &[], 0);
    assert_eq!(candidates.draw_ahead(2, 50), [item(0), item(1)]);
    let first = candidates.pop(0).unwrap();
    candidates.collided(&first);
    let drawn = candidates.draw_ahead(4, 50);
    assert!(drawn.iter().collect::<BTreeSet<_>>().len() == 4 && drawn.iter().all(|drawn| *drawn <= item(16)));
    candidates.ended(&drawn[1]);
    assert_eq!([candidates.pop(0), candidates.pop(0)], [Some(drawn[0].clone()), Some(drawn[2].clone())]);
    let urgent = "050-0000000100".to_owned();
    let listed = [vec![urgent.clone(), drawn[3].as_str().to_owned()], names(&[20, 21])].concat();
    look_again(&mut candidates, ItemLayout::Own, &listed, &[], 0);
    assert_eq!(candidates.pop(0), ItemLayout::Own.parse(&urgent));
    assert_eq!([candidates.pop(0), candidates.pop(0)], [Some(drawn[3].clone()), Some(item(20))]);
}
