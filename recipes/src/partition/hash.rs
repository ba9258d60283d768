//! Which member has an item: rendezvous hashing, a pure function that every member computes alike.
//!
//! Each pair of a member and an item has a weight, and the member with the greatest weight has the item. So a
//! member that joins takes items from others and moves no other item, and the items of a member that left go
//! to those that have the next greatest weight.
//!
//! Source: D. Thaler and C. Ravishankar, "Using name-based mappings to increase hit rates", 1998.

/// A name, and what of its weight does not depend on the other name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hashed<N> {
    pub(super) name: N,
    hash: u64,
}

impl<N: AsRef<str>> Hashed<N> {
    pub(super) fn new(name: N) -> Self {
        let hash = mix(fnv(name.as_ref().as_bytes()));
        Self { name, hash }
    }
}

/// The member that has the item; `None` without members. Of equal weights the greater name decides.
pub(super) fn owner<'a, M: AsRef<str>, I>(
    item: &Hashed<I>,
    members: impl IntoIterator<Item = &'a Hashed<M>>,
) -> Option<&'a M> {
    let weight = |member: &Hashed<M>| mix(member.hash ^ item.hash.rotate_left(32));
    let heavier = |one: &&'a Hashed<M>, other: &&'a Hashed<M>| {
        weight(one).cmp(&weight(other)).then_with(|| one.name.as_ref().cmp(other.name.as_ref()))
    };
    members.into_iter().max_by(heavier).map(|member| &member.name)
}

/// FNV-1a with 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The finalizer of MurmurHash3 with 64 bits: each bit of the input changes half the bits of the result.
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn hashed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Vec<Hashed<String>> {
        names.into_iter().map(|name| Hashed::new(name.as_ref().to_owned())).collect()
    }

    fn assignment(items: &[Hashed<String>], members: &[Hashed<String>]) -> BTreeMap<String, String> {
        let owner = |item: &Hashed<String>| Some((item.name.clone(), owner(item, members)?.clone()));
        items.iter().filter_map(owner).collect()
    }

    /// Every member of a partition must compute the same, in every version and on every machine.
    #[test]
    fn the_hashes_are_those_of_the_protocol() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(mix(1), 0xb456_bcfc_34c2_cb2c);
        let members = hashed(["worker-1", "worker-2", "worker-3"]);
        let items = hashed((0..12).map(|number| format!("shard-{number}")));
        let owners: Vec<&str> =
            items.iter().map(|item| owner(item, &members).unwrap().split_at(7).1).collect();
        assert_eq!(owners.concat(), "131132312123");
    }

    #[test]
    fn without_members_no_member_has_an_item() {
        assert_eq!(owner::<String, _>(&Hashed::new("a"), []), None);
    }

    /// 64 items over 4 members: a share has 16 on average, and rarely less than half or more than double.
    #[test]
    fn the_shares_are_even_within_what_chance_allows() {
        let items = hashed((0..64).map(|number| format!("{number}")));
        let mut sizes = Vec::new();
        for round in 0..100 {
            let members = hashed((0..4).map(|number| format!("10.0.{round}.{number}:8080")));
            let assignment = assignment(&items, &members);
            for member in &members {
                sizes.push(assignment.values().filter(|owner| **owner == member.name).count());
            }
        }
        let far = sizes.iter().filter(|size| !(8..=26).contains(*size)).count();
        assert!(far <= 8, "{far} of {} shares are far from 16: {sizes:?}", sizes.len());
    }

    proptest! {
        #[test]
        fn a_change_moves_only_the_items_of_the_member_that_joined_or_left(
            members in btree_set("[a-z0-9.:-]{1,12}", 1..12),
            joins in "[A-Z]{1,8}",
            items in btree_set("[a-z0-9-]{1,12}", 0..80),
        ) {
            let items = hashed(&items);
            let (few, many) = {
                let few = hashed(&members);
                let many: Vec<_> = few.iter().cloned().chain(hashed([&joins])).collect();
                (assignment(&items, &few), assignment(&items, &many))
            };
            let is_its = |of: &(&String, &String)| *of.1 == joins;
            let share: BTreeSet<_> = many.iter().filter(is_its).map(|of| of.0).collect();
            let has_moved = |of: &(&String, &String)| few[of.0] != *of.1;
            let moved: BTreeSet<_> = many.iter().filter(has_moved).map(|of| of.0).collect();
            // Read from left to right it joins, from right to left it leaves.
            prop_assert_eq!(moved, share);
        }

        #[test]
        fn the_order_of_the_members_does_not_matter(
            members in vec("[a-z]{1,6}", 1..8), item in "[a-z]{1,6}", turn in 0_usize..8,
        ) {
            let mut turned = members.clone();
            turned.rotate_left(turn % members.len());
            let item = Hashed::new(item);
            let (one, other) = (hashed(&members), hashed(&turned));
            prop_assert_eq!(owner(&item, &one), owner(&item, &other));
        }

        #[test]
        fn an_item_that_is_added_or_removed_moves_no_other(
            members in btree_set("[a-z]{1,6}", 1..8), items in btree_set("[a-z]{1,6}", 1..40),
        ) {
            let (members, all) = (hashed(&members), hashed(&items));
            let whole = assignment(&all, &members);
            let rest = assignment(&all[1..], &members);
            prop_assert!(rest.iter().all(|(item, owner)| whole[item] == *owner));
        }
    }
}
