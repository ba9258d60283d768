//! The lines of a server's answer to the four-letter word `cons`.

use crate::escape::printable;

/// Reads ` /10.0.0.7:53122[1](queued=0,…,sid=0x1000003f9,…)`, one line for each connection.
pub(crate) fn parse(answer: &str, server: &str) -> Vec<(i64, String)> {
    let client = |line: &str| {
        let (head, rest) = line.trim().strip_prefix('/')?.split_once("](")?;
        // An IPv6 address is in brackets, too.
        let (address, _) = head.rsplit_once('[')?;
        let session = rest.split_once("sid=0x")?.1.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        let session = u64::from_str_radix(session, 16).ok()?.cast_signed();
        let address: String = address.chars().take(80).collect();
        Some((session, format!("{} at server {server}", printable(&address))))
    };
    answer.lines().filter_map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cons_tells_the_address_of_a_session() {
        let answer = " /127.0.0.1:40112[1](queued=0,recved=5,sent=5,sid=0x1000003f9,\
                      lop=PING,est=1,to=15000)\n \
                      /127.0.0.1:40113[0](queued=0,recved=1,sent=0)\n\n";
        assert_eq!(
            parse(answer, "zk1:2181"),
            [(0x1_0000_03f9, "127.0.0.1:40112 at server zk1:2181".to_owned())]
        );
    }

    #[test]
    fn a_session_with_the_highest_bit_is_the_number_that_stat_has() {
        for address in ["[0:0:0:0:0:0:0:1]:4", "10.0.0.1:4"] {
            let answer = format!(" /{address}[1](sid=0xff00000000000001,to=1)");
            assert_eq!(parse(&answer, "a"), [(-0x00ff_ffff_ffff_ffff, format!("{address} at server a"))]);
        }
    }
}
