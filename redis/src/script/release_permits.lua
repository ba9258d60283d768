-- Gives permits back and grants them to waiters, or leaves the queue.
-- KEYS: lock, fence, queue, waiters, permits. ARGV: id. Returns 1 if the id held permits, otherwise 0.
local id = ARGV[1]
local at = now()
drop_expired(at)
local held = redis.call('ZSCORE', lock, id)
if held then
  give_back(id)
elseif redis.call('ZREM', queue, id) == 1 then
  redis.call('HDEL', waiters, id)
end
settle(at)
drop_expired(at)
return held and 1 or 0
