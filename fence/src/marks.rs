use lockkeeper_lock::FencingToken;

/// The newest tokens that a resource has seen: what decides on every other token.
///
/// * A write is admitted if its token is at least [`writer`](Self::writer) and at least
///   [`reader`](Self::reader). Then `writer` is its token. An equal token is the same holder.
/// * A read is admitted if its token is at least `writer`. Then `reader` is the greater of its token and
///   `reader`. So readers do not exclude each other, in whichever order they arrive.
///
/// The mark of the readers refuses a late writer also before the next writer arrives: what a reader has read
/// does not change while it holds its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marks {
    writer: FencingToken,
    reader: FencingToken,
}

impl Default for Marks {
    fn default() -> Self {
        Self::new(FencingToken::new(0), FencingToken::new(0))
    }
}

impl Marks {
    /// The marks that a resource has stored, for authors of stores. A resource that has stored none has the
    /// default: the least token for both.
    #[must_use]
    pub const fn new(writer: FencingToken, reader: FencingToken) -> Self {
        Self { writer, reader }
    }

    /// The newest token of a write, or the mark that an engineer set.
    #[must_use]
    pub const fn writer(self) -> FencingToken {
        self.writer
    }

    /// The newest token of a read.
    #[must_use]
    pub const fn reader(self) -> FencingToken {
        self.reader
    }

    /// The marks behind a write with this token.
    ///
    /// # Errors
    ///
    /// The token is late. The error is the newest token.
    pub fn write(self, token: FencingToken) -> Result<Self, FencingToken> {
        let newest = self.writer.max(self.reader);
        if token < newest { Err(newest) } else { Ok(Self { writer: token, ..self }) }
    }

    /// The marks behind a read with this token.
    ///
    /// # Errors
    ///
    /// The token is late. The error is the newest token of a write.
    pub fn read(self, token: FencingToken) -> Result<Self, FencingToken> {
        if token < self.writer {
            return Err(self.writer);
        }
        Ok(Self { reader: self.reader.max(token), ..self })
    }

    /// The marks that refuse this token, and all hand-overs of its node. They are never lower than before.
    #[must_use]
    pub fn above(self, token: FencingToken) -> Self {
        Self { writer: self.writer.max(token.mark_above()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(writer: u64, reader: u64) -> Marks {
        Marks::new(FencingToken::new(writer), FencingToken::new(reader))
    }

    #[test]
    fn a_write_is_admitted_unless_a_newer_writer_or_reader_was_seen() {
        let write = |seen: Marks, token| seen.write(FencingToken::new(token));
        assert_eq!(write(Marks::default(), 5), Ok(marks(5, 0)));
        assert_eq!(write(marks(5, 3), 5), Ok(marks(5, 3)), "the same holder");
        assert_eq!(write(marks(5, 3), 6), Ok(marks(6, 3)));
        assert_eq!(write(marks(5, 3), 4), Err(FencingToken::new(5)));
        assert_eq!(write(marks(5, 7), 6), Err(FencingToken::new(7)), "a reader has read behind it");
        assert_eq!(write(marks(5, 7), 7), Ok(marks(7, 7)));
    }

    #[test]
    fn a_read_is_admitted_unless_a_newer_writer_was_seen() {
        let read = |seen: Marks, token| seen.read(FencingToken::new(token));
        assert_eq!(read(Marks::default(), 5), Ok(marks(0, 5)));
        assert_eq!(read(marks(5, 9), 7), Ok(marks(5, 9)), "readers do not exclude each other");
        assert_eq!(read(marks(5, 0), 5), Ok(marks(5, 5)), "a writer that was downgraded keeps its token");
        assert_eq!(read(marks(5, 9), 4), Err(FencingToken::new(5)));
    }

    #[test]
    fn the_generation_is_compared_first() {
        let restored = FencingToken::from_parts(1, 3, 0);
        let seen = marks(900, 901);
        assert_eq!(seen.write(FencingToken::new(3)), Err(FencingToken::new(901)));
        let seen = seen.write(restored).unwrap();
        assert_eq!(seen.write(FencingToken::new(902)), Err(restored));
        assert_eq!(seen.read(FencingToken::new(902)), Err(restored));
    }

    #[test]
    fn a_mark_refuses_a_token_and_its_hand_overs_and_is_never_set_back() {
        let seen = marks(5, 0).above(FencingToken::new(7));
        assert_eq!(seen, marks(8, 0));
        for late in [FencingToken::new(7), FencingToken::from_parts(0, 7, 9)] {
            assert!(seen.write(late).is_err() && seen.read(late).is_err());
        }
        assert!(seen.write(FencingToken::new(8)).is_ok());
        assert_eq!(seen.above(FencingToken::new(3)), seen);
    }
}
