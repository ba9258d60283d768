use super::curator_item;
use super::item_layout::{ItemLayout, NodeData, PutOptions};
use super::name::ItemName;
use super::shard_number::ShardNumber;
use super::stored::StoredItem;

/// A child of a queue or of its directories.
pub(crate) fn queue_names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(shard) = ShardNumber::parse(text) {
        assert_eq!(shard.name(), text);
        assert!(shard.next().is_none_or(|next| next > shard));
    }
    for layout in ItemLayout::ALL {
        layout.prefix_like(text);
        if let Some(failed) = layout.parse_failed(text) {
            assert_eq!(failed.among_failed(), text);
        }
        let Some(item) = layout.parse(text) else { continue };
        assert_eq!(item.as_str(), text);
        assert_eq!(layout.parse_failed(&item.among_failed()), Some(item.clone()));
        if layout.is_own() {
            let moved = item.in_shard(ShardNumber::MAX);
            assert_eq!(layout.parse_failed(&moved.among_failed()), Some(moved));
        }
    }
}

/// The data of an item.
pub(crate) fn queue_items(data: &[u8]) {
    let item = StoredItem::decode(data);
    let held = item.value.len() + item.failures.iter().map(String::len).sum::<usize>();
    assert!(held <= data.len());
    let failed = item.claimed_by("worker").failed(&String::from_utf8_lossy(data), 1_700_000_000_000);
    assert!(failed.failures.len() <= 10 && failed.failures.last().is_some_and(|last| last.len() <= 300));
    for stored in [item, failed] {
        assert_eq!(StoredItem::decode(&stored.encode()), stored);
    }

    if let Ok(values) = curator_item::decode(data) {
        assert!(values.iter().map(|value| value.len() + 5).sum::<usize>() <= data.len());
    }
    assert_eq!(curator_item::decode(&curator_item::encode(data)), Ok(vec![data.to_vec()]));
    for layout in ItemLayout::ALL {
        of_layout(layout, data);
    }
}

/// What a layout writes is what it reads.
fn of_layout(layout: ItemLayout, data: &[u8]) {
    let name = ItemName::of(&format!("{}0000000004", layout.prefix(PutOptions::default(), 1)));
    if let NodeData::Item(item) = layout.decode(&name, data, 0) {
        assert_eq!(layout.decode(&name, &layout.encode(&item), 0), NodeData::Item(item));
    }
}
