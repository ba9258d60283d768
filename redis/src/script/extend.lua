-- Extends the lease of the mutex, if the id still holds it.
-- KEYS: lock, fence, queue, waiters. ARGV: id, lease in ms. Returns 1 if it does, otherwise 0.
local holder = redis.call('GET', lock)
if holder == ARGV[1] then
  return redis.call('PEXPIRE', lock, tonumber(ARGV[2]))
end
if not holder and redis.call('ZCARD', queue) > 0 then
  settle(now())
end
return 0
