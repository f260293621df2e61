UPDATE penstock.data_source SET is_default = false WHERE is_default
