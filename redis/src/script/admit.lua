-- Records starts at the first time at which the window has room for them, behind all earlier ones.
-- KEYS: starts, a sorted set by time. ARGV: id, starts, limit, ms for which a start counts, longest wait in ms or -1.
-- Returns {1, ms until the starts}, or {0, ms until they would be} if that is too long.
local starts = KEYS[1]
local id, asked, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local span, longest = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000)
local first = redis.call('ZRANGE', starts, 0, 0)[1]
if first and string.sub(first, 1, 11) == 'lockkeeper:' then
  -- The holders of a semaphore. This fails, as any command does on a key of another kind.
  redis.call('GET', starts)
end
local recorded = redis.call('ZSCORE', starts, id .. ':1')
if recorded then
  return {1, recorded - at}
end
local begin = at
local last = redis.call('ZREVRANGE', starts, 0, 0, 'WITHSCORES')[2]
if last then
  begin = math.max(begin, tonumber(last))
end
local index = redis.call('ZCARD', starts) - (limit - asked) - 1
if index >= 0 then
  local over = redis.call('ZRANGE', starts, index, index, 'WITHSCORES')[2]
  begin = math.max(begin, over + span)
end
if longest >= 0 and begin - at > longest then
  return {0, begin - at}
end
for number = 1, asked do
  redis.call('ZADD', starts, string.format('%.0f', begin), id .. ':' .. number)
end
redis.call('ZREMRANGEBYRANK', starts, 0, -(limit + 1))
redis.call('PEXPIRE', starts, begin - at + span)
return {1, begin - at}
