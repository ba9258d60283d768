//! A server that lies: what passes to the client is not what was sent.

use bytes::{BufMut, BytesMut};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::wire::OpCode;

/// The header of a reply: xid, zxid, error.
const HEADER: usize = 16;
/// The numbers that clients give to what is not asked for by callers.
const XIDS: [i32; 6] = [-1, -2, -4, -8, -9, 0];

/// Decides which messages to spoil, and how; the same seed decides alike.
#[derive(Debug)]
pub(crate) struct Liar {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: StdRng,
    /// One message in this number is falsified.
    one_in: u32,
    lies: Vec<Lie>,
}

/// How a message from the server was spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Lie {
    /// Some bits are others.
    Flipped,
    /// The end is missing, and the length says so.
    Shortened,
    /// Something was appended.
    Lengthened,
    /// The length is not that of the message: too small, too large, huge, negative.
    WrongLength,
    /// It answers another request, or none, or is something else altogether.
    WrongNumber,
    /// It has another error code than it had, or one where there was none.
    WrongError,
    /// An unexpected event precedes it.
    Event,
    /// It is sent twice.
    Twice,
    /// It is nothing at all: random bytes.
    Noise,
}

const LIES: [Lie; 9] = [
    Lie::Flipped,
    Lie::Shortened,
    Lie::Lengthened,
    Lie::WrongLength,
    Lie::WrongNumber,
    Lie::WrongError,
    Lie::Event,
    Lie::Twice,
    Lie::Noise,
];

impl Liar {
    pub(crate) fn new(seed: u64, one_in: u32) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { state: Mutex::new(State { rng, one_in, lies: Vec::new() }) }
    }

    /// The lies so far.
    pub(crate) fn lies(&self) -> Vec<Lie> {
        self.state.lock().lies.clone()
    }

    /// The message to send instead of a message that answers `op`, lengths included; `None` for the message
    /// itself.
    pub(crate) fn instead_of(&self, message: &[u8], op: OpCode, path: Option<&str>) -> Option<BytesMut> {
        let state = &mut *self.state.lock();
        if !state.rng.random_ratio(1, state.one_in) {
            return None;
        }
        let lie = *LIES.get(state.rng.random_range(0..LIES.len()))?;
        // The client allocates room for the announced number of names, without a check of the message's
        // length: 24 bytes for each of up to 2³¹, which few machines have. It dies then, and no one can keep
        // it from that.
        let lie = if op == OpCode::MultiRead && lie == Lie::Flipped { Lie::Noise } else { lie };
        state.lies.push(lie);
        Some(state.falsify(lie, message, op, path.unwrap_or("/")))
    }
}

impl State {
    fn falsify(&mut self, lie: Lie, message: &[u8], op: OpCode, path: &str) -> BytesMut {
        let rng = &mut self.rng;
        let mut spoiled = BytesMut::from(message);
        match lie {
            Lie::Flipped => {
                for _ in 0..rng.random_range(1..=8) {
                    let place = rng.random_range(0..message.len().max(1));
                    // See above: which request it answers, and how many names there are.
                    let is_spared = place < 4 || (HEADER..HEADER + 2).contains(&place);
                    if let Some(byte) = spoiled.get_mut(place).filter(|_| op == OpCode::Connect || !is_spared)
                    {
                        *byte ^= 1 << rng.random_range(0..8);
                    }
                }
            }
            Lie::Shortened => spoiled.truncate(rng.random_range(0..message.len().max(1))),
            Lie::Lengthened => spoiled.put_bytes(rng.random(), rng.random_range(1..200)),
            Lie::WrongNumber => {
                let near = rng.random_range(-3..=3);
                let number = XIDS.get(rng.random_range(0..XIDS.len() * 2)).copied();
                let own = message.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes));
                overwrite(&mut spoiled, 0, number.unwrap_or_else(|| own.wrapping_add(near)));
            }
            Lie::WrongError => overwrite(&mut spoiled, 12, rng.random_range(-130..3)),
            Lie::WrongLength => {
                let own = i32::try_from(message.len()).unwrap_or(0);
                let lengths = [i32::MAX, i32::MIN, -1, 0, own - 1, own + 1, own * 2, 1 << 20];
                let length = lengths.get(rng.random_range(0..lengths.len())).copied().unwrap_or(0);
                let mut sent = BytesMut::new();
                sent.put_i32(length);
                sent.put_slice(message);
                return sent;
            }
            Lie::Event => {
                let mut sent = framed(&event(rng.random_range(-2..6), path));
                sent.put_slice(&framed(message));
                return sent;
            }
            Lie::Twice => {
                let mut sent = framed(message);
                sent.put_slice(&framed(message));
                return sent;
            }
            Lie::Noise => {
                // Lists are spared, see above: their count stays small.
                spoiled.iter_mut().skip(HEADER + 4).for_each(|byte| *byte = rng.random());
            }
        }
        framed(&spoiled)
    }
}

fn overwrite(message: &mut BytesMut, at: usize, value: i32) {
    if let Some(place) = message.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn framed(message: &[u8]) -> BytesMut {
    let mut frame = BytesMut::with_capacity(message.len() + 4);
    frame.put_i32(i32::try_from(message.len()).unwrap_or(i32::MAX));
    frame.put_slice(message);
    frame
}

/// A watch event of that kind, as if the node had just changed.
fn event(kind: i32, path: &str) -> BytesMut {
    let mut event = BytesMut::new();
    event.put_i32(-1);
    event.put_i64(-1);
    event.put_i32(0);
    event.put_i32(kind);
    event.put_i32(3);
    event.put_i32(i32::try_from(path.len()).unwrap_or(0));
    event.put_slice(path.as_bytes());
    event
}
