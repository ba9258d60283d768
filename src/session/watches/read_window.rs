//! The data that a session reads at once.
//!
//! A server has the answers to all requests in flight in its memory. 512 reads of nodes with 900 kB each are
//! more than the default heap of a server, and take it down with every session on it. Nothing tells the size
//! of a node before the node is read, so the sizes of the answers so far decide how much is asked for next.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The data in flight, if it has the expected sizes, in KiB.
const WINDOW: u32 = 2_048;
/// Expected of a node before any was read, in KiB: the first reads are 16.
const FIRST: u32 = 128;
/// The least that a read counts, in KiB: nodes that are much larger than all before are at most 128 at once.
const READ_MIN: u32 = 16;
/// The data that one request reads, if it has the expected size, in KiB.
const REQUEST: u32 = 256;

/// The size that is expected of the next node, in KiB.
///
/// It rises to each larger node at once, and falls by a quarter of the difference with each smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExpectedSize(u32);

impl ExpectedSize {
    fn learn(&mut self, bytes: usize) {
        let size = u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX).clamp(1, WINDOW);
        self.0 = size.max(self.0 - self.0.saturating_sub(size).div_ceil(4));
    }

    /// The part of the window that a read takes.
    fn cost(self) -> u32 {
        self.0.max(READ_MIN)
    }
}

/// Bounds the data that is read at once. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ReadWindow {
    /// In KiB.
    room: Arc<Semaphore>,
    expected: Arc<Mutex<ExpectedSize>>,
}

/// Room for reads. Dropping it gives the room back.
#[derive(Debug)]
pub(crate) struct ReadRoom {
    reads: usize,
    expected: Arc<Mutex<ExpectedSize>>,
    room: OwnedSemaphorePermit,
}

impl Default for ReadWindow {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(usize::try_from(WINDOW).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { room, expected: Arc::new(Mutex::new(ExpectedSize(FIRST))) }
    }
}

impl ReadWindow {
    /// The same room, for nodes whose sizes say nothing about the others.
    pub(crate) fn for_other_nodes(&self) -> Self {
        Self { room: Arc::clone(&self.room), ..Self::default() }
    }

    /// Room for one request, of `max` reads at most. `None` if there is none.
    ///
    /// The request is as large as it should be, or is not sent: requests as large as the room that each
    /// answer leaves would become many.
    pub(crate) fn try_reserve(&self, max: usize) -> Option<ReadRoom> {
        let (reads, cost) = self.request(max);
        let room = Arc::clone(&self.room).try_acquire_many_owned(cost).ok()?;
        Some(self.room_for(reads, room))
    }

    /// Waits for room for one request, of `max` reads at most, in the order of the calls. One request has
    /// room if nothing is in flight.
    pub(crate) async fn reserve(&self, max: usize) -> ReadRoom {
        loop {
            let (reads, cost) = self.request(max);
            // The window is never closed.
            if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(cost).await {
                return self.room_for(reads, room);
            }
        }
    }

    /// The reads of the next request, and the part of the window that they take: half of it, or one read.
    fn request(&self, max: usize) -> (u32, u32) {
        let expected = *self.expected.lock();
        let reads = (REQUEST / expected.0).min(u32::try_from(max).unwrap_or(u32::MAX)).max(1);
        let reads = reads.min(WINDOW / 2 / READ_MIN);
        (reads, reads * expected.cost())
    }

    fn room_for(&self, reads: u32, room: OwnedSemaphorePermit) -> ReadRoom {
        let (reads, expected) = (usize::try_from(reads).unwrap_or_default(), Arc::clone(&self.expected));
        ReadRoom { reads, expected, room }
    }
}

impl ReadRoom {
    /// The number of reads that it is for.
    pub(crate) fn reads(&self) -> usize {
        self.reads
    }

    /// Gives back the room for all but the first `reads`.
    pub(crate) fn shrink_to(&mut self, reads: usize) {
        if let Some(surplus) = self.reads.checked_sub(reads) {
            let cost = self.room.num_permits() / self.reads.max(1);
            drop(self.room.split(surplus * cost));
            self.reads = reads;
        }
    }

    /// The reads were answered by nodes with data of these sizes.
    pub(crate) fn answered(self, sizes: impl IntoIterator<Item = usize>) {
        let mut expected = self.expected.lock();
        sizes.into_iter().for_each(|bytes| expected.learn(bytes));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LARGE: usize = 900_000;

    /// Reads nodes of these sizes, each request answered before the next is sent once no more fit. Returns
    /// the largest amount of data in flight, and the number of requests.
    fn read_all(window: &ReadWindow, mut sizes: &[usize]) -> (usize, usize) {
        let (mut in_flight, mut largest, mut requests) = (std::collections::VecDeque::new(), 0, 0);
        while !sizes.is_empty() || !in_flight.is_empty() {
            while !sizes.is_empty() {
                let Some(mut room) = window.try_reserve(64) else { break };
                room.shrink_to(sizes.len());
                let (asked, rest) = sizes.split_at(room.reads());
                in_flight.push_back((room, asked));
                (sizes, requests) = (rest, requests + 1);
            }
            largest = largest.max(in_flight.iter().flat_map(|(_, asked)| asked.iter()).sum());
            if let Some((room, asked)) = in_flight.pop_front() {
                room.answered(asked.iter().copied());
            }
        }
        (largest, requests)
    }

    #[test]
    fn large_nodes_are_few_at_a_time_from_the_first_request_on() {
        let (largest, requests) = read_all(&ReadWindow::default(), &[LARGE; 220]);
        assert!(largest <= 16 * LARGE, "{largest} bytes before a size is known");
        assert!(requests >= 200, "{requests} requests");
        let window = ReadWindow::default();
        read_all(&window, &[LARGE]);
        let (largest, _) = read_all(&window, &[LARGE; 220]);
        assert!(largest <= 2 * LARGE, "{largest} bytes once the sizes are known");
    }

    #[test]
    fn many_small_nodes_need_hardly_more_requests_than_full_ones() {
        let (_, requests) = read_all(&ReadWindow::default(), &[100; 10_000]);
        assert!(requests <= 10_000_usize.div_ceil(64) + 16, "{requests} requests");
    }

    #[test]
    fn nodes_much_larger_than_all_before_are_at_most_128_at_a_time() {
        let window = ReadWindow::default();
        read_all(&window, &[100; 1_000]);
        let (largest, _) = read_all(&window, &[LARGE; 500]);
        assert!(largest <= 128 * LARGE, "{largest} bytes");
    }

    #[test]
    fn a_node_larger_than_the_window_is_read_alone() {
        let window = ReadWindow::default();
        window.try_reserve(1).unwrap().answered([usize::MAX]);
        let alone = window.try_reserve(64).unwrap();
        assert_eq!(alone.reads(), 1);
        assert!(window.try_reserve(1).is_none());
        drop(alone);
        assert!(window.reserve(1).now_or_never().is_some());
    }

    #[test]
    fn room_that_is_not_needed_is_given_back() {
        let window = ReadWindow::default();
        let mut rooms: Vec<_> = std::iter::from_fn(|| window.try_reserve(64)).collect();
        assert_eq!(rooms.iter().map(ReadRoom::reads).sum::<usize>(), 16);
        rooms[0].shrink_to(1);
        assert!(window.try_reserve(1).is_some() && window.try_reserve(2).is_none());
        drop(rooms);
        assert!(window.try_reserve(2).is_some());
    }

    #[test]
    fn views_share_the_room_and_not_the_sizes() {
        let window = ReadWindow::default();
        window.try_reserve(1).unwrap().answered([usize::MAX]);
        let other = window.for_other_nodes();
        assert_eq!(other.try_reserve(64).unwrap().reads(), 2);
        let _all = window.try_reserve(1).unwrap();
        assert!(other.try_reserve(1).is_none());
    }
}
