use std::collections::BTreeSet;

use lockkeeper_test_recipes::{Claim, Share};

/// Promise 3: the tokens that were granted in one directory.
#[derive(Default)]
pub(super) struct Tokens {
    newest: (u64, u32),
    newest_exclusive: (u64, u32),
    permits: BTreeSet<(u64, u32)>,
}

impl Tokens {
    /// Enters a grant, and says what is wrong with its token. `is_again`: the same node is held already.
    pub(super) fn enter(&mut self, claim: &Claim, is_again: bool) -> Result<(), String> {
        let token = (claim.token, claim.handover);
        let may_be_equal = is_again || claim.is_inherited;
        let is_after = |last: (u64, u32)| token > last || token == last && may_be_equal;
        let (is_right, last) = match claim.share {
            Share::Exclusive => (is_after(self.newest), self.newest),
            Share::Shared => (is_after(self.newest_exclusive), self.newest_exclusive),
            Share::Permits { .. } => (self.permits.insert(token) || is_again, token),
        };
        self.newest = self.newest.max(token);
        if claim.share == Share::Exclusive {
            self.newest_exclusive = self.newest_exclusive.max(token);
        }
        if is_right { Ok(()) } else { Err(format!("has token {token:?} after {last:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(token: u64, share: Share) -> Claim {
        Claim {
            nodes: vec![format!("/locks/0/{token}")],
            token,
            handover: 0,
            is_inherited: false,
            share,
            ignored: Vec::new(),
        }
    }

    #[test]
    fn a_writers_token_is_above_all_and_a_readers_above_all_writers() {
        let mut tokens = Tokens::default();
        assert!(tokens.enter(&claim(3, Share::Exclusive), false).is_ok());
        assert!(tokens.enter(&claim(7, Share::Shared), false).is_ok());
        assert!(tokens.enter(&claim(5, Share::Shared), false).is_ok());
        assert!(tokens.enter(&claim(6, Share::Exclusive), false).is_err());
        assert!(tokens.enter(&claim(8, Share::Exclusive), false).is_ok());
        assert!(tokens.enter(&claim(8, Share::Exclusive), true).is_ok());
        assert!(tokens.enter(&claim(7, Share::Shared), false).is_err());
        assert!(tokens.enter(&Claim { is_inherited: true, ..claim(8, Share::Shared) }, false).is_ok());
        assert!(tokens.enter(&Claim { handover: 1, ..claim(8, Share::Exclusive) }, false).is_ok());
        assert!(tokens.enter(&claim(8, Share::Exclusive), true).is_err());
    }

    #[test]
    fn tokens_of_permits_are_unique_and_in_no_order() {
        let mut tokens = Tokens::default();
        let permits = Share::Permits { permits: 2, limit: 3 };
        assert!(tokens.enter(&claim(4, permits), false).is_ok());
        assert!(tokens.enter(&claim(2, permits), false).is_ok());
        assert!(tokens.enter(&claim(2, permits), false).is_err());
    }
}
