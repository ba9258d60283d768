//! The check on Redis, by scripts in Lua for every client.
//!
//! A script of Redis runs alone on the server: the check and the write are one step. Both keys have to be on
//! one node of a cluster, by a common hash tag such as `{train-7}`.
//!
//! `KEYS[1]` is the mark: a key of the resource that no one else writes, and that has no time to live and is
//! never evicted. `ARGV[1]` is the token as the 39 digits of
//! [`FencingToken::to_decimal`](lockkeeper_lock::FencingToken::to_decimal), which are in the order of the
//! tokens. The marks last as long as the data of the server.

/// The text of the check, for the scripts that begin with it.
macro_rules! check {
    () => {
        "\
if not string.find(ARGV[1], '^%d+$') or #ARGV[1] ~= 39 then
    return redis.error_reply('ERR a fencing token has 39 digits')
end
local newest = redis.call('GET', KEYS[1])
if newest and ARGV[1] < newest then
    return newest
end
redis.call('SET', KEYS[1], ARGV[1])
"
    };
}

/// The check alone: returns nothing if the token is admitted, and the newer token if it is stale.
///
/// Alone, it protects no write that follows it. Write your own script with this text in front.
pub const CHECK: &str = check!();

/// The check, and then `SET KEYS[2] ARGV[2]`: returns nothing if that is done, and the newer token if it is
/// not.
pub const CHECK_AND_SET: &str = concat!(check!(), "redis.call('SET', KEYS[2], ARGV[2])\n");
