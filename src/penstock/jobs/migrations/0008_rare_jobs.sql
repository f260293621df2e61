-- A page of a queue or kind that few jobs have was searched in the whole table. The filters of this index tell which
-- stretches of it cannot have any; it is some hundred kilobytes for ten million jobs and costs an enqueue next to nothing.

CREATE INDEX job_where ON penstock.job USING brin (queue text_bloom_ops, kind text_bloom_ops)
  WITH (pages_per_range = 32, autosummarize = on);
