-- Releases the mutex to the first waiter that is alive, or leaves its queue.
-- KEYS: lock, fence, queue, waiters. ARGV: id. Returns 1 if the id held the lock, otherwise 0.
local id = ARGV[1]
local holder = redis.call('GET', lock)
if holder == id then
  if redis.call('ZCARD', queue) == 0 or not settle(now()) then
    redis.call('DEL', lock)
  end
  return 1
end
if redis.call('ZREM', queue, id) == 1 then
  redis.call('HDEL', waiters, id)
end
if not holder and redis.call('ZCARD', queue) > 0 then
  settle(now())
end
return 0
