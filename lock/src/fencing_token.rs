use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use thiserror::Error as ThisError;

/// The fencing token of a grant. Later grants of a lock have greater tokens.
///
/// Pass it to every resource that the lock protects, and let the resource refuse a token that is smaller than
/// one it has seen. Only that stops a paused process from writing after another contender was granted its
/// lock; nothing that a client does can.
///
/// On ZooKeeper, its number is the transaction id (zxid) of the create of the holder's node. These ids have
/// one order in the whole ensemble, even if a lock's directory is removed and created again. On Redis, its
/// number is a counter beside the lock. On servers that are restored from a backup, set up anew, or that
/// lost data, these numbers start again. Then the operator raises the [generation](Self::generation) of the
/// tokens, which all users of the servers set. Leave the marks of the resources as they are: a mark that is
/// raised refuses the new tokens, and a mark that is set back admits those of a paused process.
///
/// A resource stores a token in one of these forms, and compares it by `<`:
///
/// | form | is | order of the tokens |
/// |---|---|---|
/// | [`to_be_bytes`](Self::to_be_bytes) | 16 bytes, for a column of bytes | yes, byte by byte |
/// | [`to_decimal`](Self::to_decimal) | 39 digits, for a column of text or `NUMERIC(39)` | yes, as text and as a number |
/// | [`as_u128`](Self::as_u128) | one integer | yes |
/// | [`generation`](Self::generation), [`as_u64`](Self::as_u64), [`handover`](Self::handover) | three numbers | yes, in this order |
/// | `Display`, `FromStr`; serde with the feature `serde` | text for people and logs, and what serde writes | **no** |
///
/// Columns that hold the 16 bytes: `BYTEA` in PostgreSQL, `BLOB` in SQLite, `BINARY(16)` in MySQL, MariaDB
/// and SQL Server, `RAW(16)` in Oracle. Columns that hold the digits: `NUMERIC(39)` in PostgreSQL, and
/// `CHAR(39)` everywhere; the decimals of other databases are too short.
///
/// # Examples
///
/// ```
/// # use lockkeeper_lock::FencingToken;
/// struct Stock { newest: Option<FencingToken>, seats: u32 }
///
/// impl Stock {
///     fn write(&mut self, token: FencingToken, seats: u32) -> Result<(), &'static str> {
///         if self.newest.is_some_and(|newest| token < newest) {
///             return Err("an earlier holder: refused");
///         }
///         self.newest = Some(token);
///         self.seats = seats;
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FencingToken {
    // The order of the fields is the order of the tokens. Each is always written: a format that does not name
    // its fields reads all of them. The default is for stored tokens that have no generation.
    #[cfg_attr(feature = "serde", serde(default))]
    generation: u32,
    number: u64,
    handover: u32,
}

impl FencingToken {
    /// The token with this number, for authors of locks and for resources that have stored it.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { generation: 0, number, handover: 0 }
    }

    /// The token with these numbers, for resources that have stored them.
    #[must_use]
    pub const fn from_parts(generation: u32, number: u64, handover: u32) -> Self {
        Self { generation, number, handover }
    }

    /// The token as one integer, for resources that store one. These integers have the order of the tokens.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        (u128::from(self.generation) << 96) | (u128::from(self.number) << 32) | u128::from(self.handover)
    }

    /// The token of [`as_u128`](Self::as_u128).
    #[must_use]
    pub const fn from_u128(token: u128) -> Self {
        // Each part is cut to its own bits.
        Self { generation: (token >> 96) as u32, number: (token >> 32) as u64, handover: token as u32 }
    }

    /// The token as 16 bytes, big-endian, for columns of bytes. Compared byte by byte, as databases compare
    /// them, they have the order of the tokens.
    #[must_use]
    pub fn to_be_bytes(self) -> [u8; 16] {
        self.as_u128().to_be_bytes()
    }

    /// The token of [`to_be_bytes`](Self::to_be_bytes).
    #[must_use]
    pub const fn from_be_bytes(bytes: [u8; 16]) -> Self {
        Self::from_u128(u128::from_be_bytes(bytes))
    }

    /// The integer of [`as_u128`](Self::as_u128) as 39 decimal digits, with leading zeros, for columns of
    /// text and of long numbers. These texts have the order of the tokens.
    #[must_use]
    pub fn to_decimal(self) -> String {
        format!("{:039}", self.as_u128())
    }

    /// Reads [`to_decimal`](Self::to_decimal), and the same integer with fewer leading zeros or none.
    ///
    /// # Errors
    ///
    /// The text has another character than a digit, has no digit or more than 39, or its number is too large.
    pub fn from_decimal(text: &str) -> Result<Self, FencingTokenError> {
        let is_plain = text.len() <= 39 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        number.map(Self::from_u128).ok_or_else(|| FencingTokenError::of(text, DECIMAL))
    }

    /// The mark that fences this token off: the least token that is greater than this one, and than the
    /// tokens of all holders that its node is [handed over](Self::handover) to. A resource whose newest token
    /// is set to it refuses them all, and takes the token of the next node.
    #[must_use]
    pub fn mark_above(self) -> Self {
        Self::from_u128((self.as_u128() | u128::from(u32::MAX)).saturating_add(1))
    }

    /// How often the servers' data was restored or set up anew, by the manager's settings: 0 by default. It
    /// decides first, so every token of a later generation is greater.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// This token in another generation, for authors of locks.
    #[must_use]
    pub const fn in_generation(self, generation: u32) -> Self {
        Self { generation, ..self }
    }

    /// The number of the grant on the servers, without the generation. Grants that share one node
    /// within a process have the same number: [`handover`](Self::handover) tells them apart.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.number
    }

    /// How often the node had been handed over within its process before this grant; 0 unless the lock keeps
    /// its node. It decides between tokens with equal [numbers](Self::as_u64).
    #[must_use]
    pub fn handover(self) -> u32 {
        self.handover
    }

    /// The token of the next grant on the same node; `None` after the last one.
    #[must_use]
    pub fn handed_over(self) -> Option<Self> {
        Some(Self { handover: self.handover.checked_add(1)?, ..self })
    }
}

impl Display for FencingToken {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.generation > 0 {
            write!(formatter, "{}:", self.generation)?;
        }
        write!(formatter, "{:#x}.{}", self.number, self.handover)
    }
}

const DISPLAYED: &str = "as it is displayed, such as 0x2a.0 or 1:0x2a.0";
const DECIMAL: &str = "as a decimal number of at most 39 digits";

/// The text is no fencing token.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{text:?} is no fencing token; write it {form}")]
pub struct FencingTokenError {
    text: String,
    form: &'static str,
}

impl FencingTokenError {
    fn of(text: &str, form: &'static str) -> Self {
        // The error is printed: a text of a megabyte must not fill the log.
        Self { text: text.chars().take(200).collect(), form }
    }
}

/// Reads what `Display` writes.
impl FromStr for FencingToken {
    type Err = FencingTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = || {
            let (generation, rest) = text.split_once(':').unwrap_or(("0", text));
            let (number, handover) = rest.strip_prefix("0x")?.split_once('.')?;
            let is_plain = |digits: &str| digits.chars().all(|digit| digit.is_ascii_hexdigit());
            if ![generation, number, handover].into_iter().all(is_plain) {
                return None;
            }
            let number = u64::from_str_radix(number, 16).ok()?;
            Some(Self { generation: generation.parse().ok()?, number, handover: handover.parse().ok()? })
        };
        parsed().ok_or_else(|| FencingTokenError::of(text, DISPLAYED))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any token, and often its neighbour in one of the three numbers.
    fn token() -> impl Strategy<Value = FencingToken> {
        let edge = |last: u64| prop_oneof![0..3_u64, (last - 2)..=last, 0..=last];
        let short = u64::from(u32::MAX);
        let parts = (edge(short), edge(u64::MAX), edge(short));
        parts.prop_map(|(generation, number, handover)| {
            FencingToken::from_parts(generation as u32, number, handover as u32)
        })
    }

    proptest! {
        #[test]
        fn the_bytes_and_the_digits_of_tokens_have_the_order_of_the_tokens(one in token(), other in token()) {
            let order = one.cmp(&other);
            prop_assert_eq!(one.to_be_bytes().cmp(&other.to_be_bytes()), order);
            prop_assert_eq!(one.to_decimal().cmp(&other.to_decimal()), order);
            prop_assert_eq!(one.as_u128().cmp(&other.as_u128()), order);
        }

        #[test]
        fn a_token_is_read_from_its_bytes_and_from_its_digits(token in token()) {
            prop_assert_eq!(FencingToken::from_be_bytes(token.to_be_bytes()), token);
            prop_assert_eq!(FencingToken::from_decimal(&token.to_decimal()), Ok(token));
            prop_assert_eq!(FencingToken::from_decimal(&token.as_u128().to_string()), Ok(token));
        }
    }

    #[test]
    fn a_text_that_is_no_decimal_number_of_a_token_is_refused() {
        let last = "340282366920938463463374607431768211455";
        assert_eq!(FencingToken::from_decimal(last), Ok(FencingToken::from_u128(u128::MAX)));
        let too_large = "340282366920938463463374607431768211456";
        let too_long = format!("0{last}");
        for text in ["", "+1", "-1", " 1", "1 ", "1.0", "0x2a.0", "\u{0661}", too_large, &too_long] {
            let refused = FencingToken::from_decimal(text).unwrap_err();
            assert!(refused.to_string().contains("decimal number"), "{refused}");
        }
    }

    #[test]
    fn a_token_is_read_from_the_text_that_it_is_displayed_as() {
        let last = FencingToken::from_parts(u32::MAX, u64::MAX, u32::MAX);
        for token in [FencingToken::new(0), FencingToken::from_parts(0, u64::MAX, 7), last] {
            assert_eq!(token.to_string().parse(), Ok(token));
            assert_eq!(FencingToken::from_u128(token.as_u128()), token);
        }
        assert_eq!(FencingToken::new(42).to_string(), "0x2a.0");
        assert_eq!(FencingToken::new(42).in_generation(3).to_string(), "3:0x2a.0");
        for text in [
            "",
            "42",
            "0x2a",
            "0x2a.",
            "0x.0",
            "0x+1.0",
            "0x1.+0",
            "0x1.0.0",
            "0x10000000000000000.0",
            ":0x1.0",
            "+1:0x1.0",
        ] {
            assert!(text.parse::<FencingToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_error_of_a_long_text_is_short() {
        let error = FencingToken::from_decimal(&"x".repeat(100_000)).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_token_is_read_from_what_serde_has_written() {
        for (generation, text) in [
            (0, r#"{"generation":0,"number":18446744073709551615,"handover":3}"#),
            (2, r#"{"generation":2,"number":18446744073709551615,"handover":3}"#),
        ] {
            let token = FencingToken::from_parts(generation, u64::MAX, 3);
            assert_eq!(serde_json::to_string(&token).unwrap(), text);
            assert_eq!(serde_json::from_str::<FencingToken>(text).unwrap(), token);
        }
        let stored = r#"{"number":4,"handover":3}"#;
        assert_eq!(serde_json::from_str::<FencingToken>(stored).unwrap(), FencingToken::from_parts(0, 4, 3));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_token_is_read_from_a_format_that_does_not_name_its_fields() {
        for generation in [0, 2] {
            let row = (FencingToken::from_parts(generation, 5, 3), 7_u32);
            let bytes = postcard::to_allocvec(&row).unwrap();
            assert_eq!(postcard::from_bytes::<(FencingToken, u32)>(&bytes).unwrap(), row);
        }
    }

    #[test]
    fn tokens_are_ordered_by_generation_and_number_and_handover_and_so_are_their_integers() {
        let parts = [(0, 4, 9), (0, 4, 10), (0, 5, 0), (0, u64::MAX, u32::MAX), (1, 0, 0), (1, 3, 1)];
        let tokens = parts.map(|(generation, number, of)| FencingToken::from_parts(generation, number, of));
        assert!(tokens.is_sorted_by(|one, next| one < next && one.as_u128() < next.as_u128()));
    }

    #[test]
    fn a_token_handed_over_is_greater_and_below_every_later_number() {
        let first = FencingToken::new(4);
        let second = first.handed_over().unwrap();
        assert!(first < second && second < FencingToken::new(5));
        assert_eq!((second.as_u64(), second.handover()), (4, 1));
        assert_eq!(FencingToken::from_parts(0, 4, u32::MAX).handed_over(), None);
        let restored = first.in_generation(2);
        assert_eq!(restored.handed_over().map(FencingToken::generation), Some(2));
    }

    #[test]
    fn the_mark_above_a_token_refuses_its_hand_overs_and_takes_the_next_node() {
        for (token, above) in [
            (FencingToken::new(4), FencingToken::new(5)),
            (FencingToken::from_parts(2, 4, 7), FencingToken::from_parts(2, 5, 0)),
            (FencingToken::from_parts(0, u64::MAX, 0), FencingToken::from_parts(1, 0, 0)),
        ] {
            assert_eq!(token.mark_above(), above);
            let last = FencingToken::from_parts(token.generation(), token.as_u64(), u32::MAX);
            assert!(token < above && last < above);
        }
        let greatest = FencingToken::from_u128(u128::MAX);
        assert_eq!(greatest.mark_above(), greatest);
    }
}
