-- The number of permits in use. KEYS: lock, fence, queue, waiters, permits.
return drop_expired(now())
