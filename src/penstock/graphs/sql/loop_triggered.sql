SELECT extract(epoch FROM penstock.now() - triggered_at)::float8 AS ago, triggered_by FROM penstock.background_loop WHERE name = :name
