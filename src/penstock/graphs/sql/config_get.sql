-- What operators have set, by name; what nobody has set has no row. Index: platform_config primary key.
SELECT name, value, updated_at, updated_by FROM penstock.platform_config WHERE name = ANY (:names::text[])
