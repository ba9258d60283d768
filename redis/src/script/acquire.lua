-- Takes the mutex, or waits for it in the queue. Called again by a waiter, it keeps the position.
-- KEYS: lock, fence, queue, waiters. ARGV: id, lease in ms, 'wait' or 'try', channel.
-- Returns {1, token}, or {0, waiters ahead, ms until the lease of the holder ends, 1 if the holder is one of ours,
-- newest token}.
local id, lease, mode, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local holder = redis.call('GET', lock)
if holder == id then
  redis.call('PEXPIRE', lock, lease)
  return {1, redis.call('INCR', fence)}
end
local waiting = redis.call('ZCARD', queue)
if not holder and waiting == 0 then
  return {1, take(id, lease)}
end
local at = now()
if mode == 'wait' then
  enqueue(id, at, lease, lease .. ':' .. channel)
end
if not holder then
  local head, token = settle(at)
  if head == id then
    return {1, token}
  end
  if not head then
    return {1, take(id, lease)}
  end
  holder = head
end
local ahead = redis.call('ZRANK', queue, id) or redis.call('ZCARD', queue)
local ours = string.sub(holder, 1, 11) == 'lockkeeper:' and 1 or 0
return {0, ahead, redis.call('PTTL', lock), ours, newest()}
