-- Takes permits, or waits for them in the queue. Called again by a waiter, it keeps the position.
-- KEYS: lock, fence, queue, waiters, permits. ARGV: id, lease in ms, 'wait' or 'try', channel, permits, limit.
-- Returns {1, token}, {0, waiters ahead, ms until the first lease of a holder ends, free permits,
-- newest token}, or {-1, limit} if the users disagree on the limit.
local id, lease, mode, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local asked, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
local at = now()
local taken = drop_expired(at)
if redis.call('ZSCORE', lock, id) then
  redis.call('ZADD', lock, at + lease, id)
  keep(lock, 2 * lease)
  keep(permits, 2 * lease)
  return {1, redis.call('INCR', fence)}
end
first_alive(at)
local waiting = redis.call('ZCARD', queue)
local recorded = tonumber(redis.call('HGET', permits, 'limit'))
if recorded and recorded ~= limit and (taken > 0 or waiting > 0) then
  return {-1, recorded}
end
redis.call('HSET', permits, 'limit', limit)
keep(permits, 2 * lease)
if waiting > 0 then
  settle(at)
  waiting = redis.call('ZCARD', queue)
  taken = tonumber(redis.call('HGET', permits, 'taken') or 0)
end
if redis.call('ZSCORE', lock, id) then
  return {1, redis.call('INCR', fence)}
end
if waiting == 0 and taken + asked <= limit then
  hold(id, asked, lease, at)
  return {1, redis.call('INCR', fence)}
end
if mode == 'wait' then
  enqueue(id, at, lease, lease .. ':' .. text(asked) .. ':' .. channel)
end
local ahead = redis.call('ZRANK', queue, id) or waiting
local first = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')
return {0, ahead, (tonumber(first[2]) or at + lease) - at, math.max(limit - taken, 0), newest()}
