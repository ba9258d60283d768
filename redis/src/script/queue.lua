-- The queue of a lock: a sorted set of ids by their order, and a hash of what is known of each waiter.
local lock, fence, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

-- A key that nobody uses any more goes away by itself.
local function keep(key, span)
  if redis.call('PTTL', key) < span then
    redis.call('PEXPIRE', key, span)
  end
end

-- The newest token. A grant with this one or an older one is not of a later wait.
local function newest()
  return tonumber(redis.call('GET', fence) or 0)
end

-- Queues the id at the end, if it does not wait already, and says until when it is alive.
local function enqueue(id, at, lease, request)
  if not redis.call('ZSCORE', queue, id) then
    local last = redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
    redis.call('ZADD', queue, (tonumber(last[2]) or 0) + 1, id)
  end
  redis.call('HSET', waiters, id, text(at + lease) .. ':' .. request)
  keep(queue, 2 * lease)
  keep(waiters, 2 * lease)
end

-- The first waiter that is alive, and its request. Removes those that are not.
local function first_alive(at)
  while true do
    local head = redis.call('ZRANGE', queue, 0, 0)[1]
    if not head then
      return nil
    end
    local expires, request = string.match(redis.call('HGET', waiters, head) or '', '^(%d+):(.*)$')
    if expires and tonumber(expires) > at then
      return head, request
    end
    redis.call('ZREM', queue, head)
    redis.call('HDEL', waiters, head)
  end
end

-- The head leaves the queue, and its manager learns of the grant.
local function granted(head, channel)
  redis.call('ZREM', queue, head)
  redis.call('HDEL', waiters, head)
  local token = redis.call('INCR', fence)
  redis.call('PUBLISH', channel, head .. ' ' .. text(token))
  return token
end
