-- Whether what somebody shares also lets others read this source.
SELECT penstock.may_lend_source(:data_source_id, :owner)
