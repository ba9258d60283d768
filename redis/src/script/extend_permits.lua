-- Extends the lease of permits, if the id still holds them.
-- KEYS: lock, fence, queue, waiters, permits. ARGV: id, lease in ms. Returns 1 if it does, otherwise 0.
local id, lease = ARGV[1], tonumber(ARGV[2])
local at = now()
drop_expired(at)
if redis.call('ZSCORE', lock, id) then
  redis.call('ZADD', lock, at + lease, id)
  keep(lock, 2 * lease)
  keep(permits, 2 * lease)
  return 1
end
settle(at)
return 0
