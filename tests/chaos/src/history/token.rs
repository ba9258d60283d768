use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use lockkeeper::FencingToken;
use serde::{Deserialize, Serialize};

/// A fencing token as it is written down: the creation of the node, and how often that was handed over. In
/// this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) zxid: u64,
    pub(crate) handover: u32,
}

impl From<FencingToken> for Token {
    fn from(token: FencingToken) -> Self {
        Self { zxid: token.as_u64(), handover: token.handover() }
    }
}

impl Display for Token {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.zxid, self.handover)
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (zxid, handover) = text.split_once('.').ok_or_else(|| format!("{text} is no token"))?;
        let no = |error| format!("{text} is no token: {error}");
        Ok(Self { zxid: zxid.parse().map_err(no)?, handover: handover.parse().map_err(no)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_ordered_by_creation_then_by_hand_overs() {
        let token = |zxid, handover| Token { zxid, handover };
        let grown = [token(4, 0), token(4, 9), token(4, 10), token(5, 0), token(u64::MAX, u32::MAX)];
        assert!(grown.is_sorted_by(|one, other| one < other));
        for token in grown {
            assert_eq!(token.to_string().parse(), Ok(token), "as a register has it");
            let line = serde_json::to_string(&token).unwrap();
            assert_eq!(serde_json::from_str::<Token>(&line).unwrap(), token, "as a history has it");
        }
    }
}
