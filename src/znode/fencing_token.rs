//! Tokens of grants, made of the transaction ids of their nodes.

pub(crate) use lockkeeper_lock::FencingToken;

use crate::znode::zxid::Zxid;

/// The token of the node that this transaction created, in a generation of tokens.
pub(crate) fn from_czxid(czxid: Zxid, generation: u32) -> FencingToken {
    FencingToken::new(czxid.as_u64()).in_generation(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_transaction_id() {
        assert_eq!(from_czxid(Zxid::new(0x1_0000_0003), 2), FencingToken::from_parts(2, 0x1_0000_0003, 0));
    }
}
