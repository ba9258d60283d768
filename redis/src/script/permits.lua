-- The lock itself is a sorted set: the ids of the holders by the time at which their leases end. The hash has the
-- permits of each holder, their sum ('taken'), and the limit on which the users agree ('limit').
local permits = KEYS[5]

local function hold(id, asked, lease, at)
  redis.call('ZADD', lock, at + lease, id)
  redis.call('HSET', permits, id, asked)
  redis.call('HINCRBY', permits, 'taken', asked)
  keep(lock, 2 * lease)
  keep(permits, 2 * lease)
end

local function give_back(id)
  redis.call('ZREM', lock, id)
  local count = redis.call('HGET', permits, id)
  if count then
    redis.call('HDEL', permits, id)
    redis.call('HINCRBY', permits, 'taken', -count)
  end
end

-- Removes the holders whose leases have ended. Returns the number of permits in use.
local function drop_expired(at)
  local first = redis.call('ZRANGE', lock, 0, 0)[1]
  if first and string.sub(first, 1, 11) ~= 'lockkeeper:' then
    -- The starts of a rate limiter. This fails, as any command does on a key of another kind.
    redis.call('GET', lock)
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', lock, '-inf', at)) do
    give_back(id)
  end
  if redis.call('ZCARD', lock) == 0 then
    local limit = redis.call('HGET', permits, 'limit')
    redis.call('DEL', permits)
    if limit and redis.call('ZCARD', queue) > 0 then
      redis.call('HSET', permits, 'limit', limit)
      keep(permits, 60000)
    end
  end
  return tonumber(redis.call('HGET', permits, 'taken') or 0)
end

-- Grants permits to the heads of the queue, as long as there is room. Returns the token of `id`, if it is among them.
local function settle(at, id)
  local mine = nil
  while true do
    local head, request = first_alive(at)
    local limit = tonumber(redis.call('HGET', permits, 'limit') or 0)
    local taken = tonumber(redis.call('HGET', permits, 'taken') or 0)
    local lease, asked, channel = string.match(request or '', '^(%d+):(%d+):(.*)$')
    if not head or taken + asked > limit then
      return mine
    end
    hold(head, tonumber(asked), tonumber(lease), at)
    local token = granted(head, channel)
    if head == id then
      mine = token
    end
  end
end
