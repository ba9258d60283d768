-- The lock itself is a string: the id of its holder.
local function take(id, lease)
  redis.call('SET', lock, id, 'PX', lease)
  return redis.call('INCR', fence)
end

-- Grants the lock to the first waiter that is alive. Returns its id and its token, or nothing if there is none.
local function settle(at)
  local head, request = first_alive(at)
  if not head then
    return nil
  end
  local lease, channel = string.match(request, '^(%d+):(.*)$')
  redis.call('SET', lock, head, 'PX', lease)
  return head, granted(head, channel)
end
