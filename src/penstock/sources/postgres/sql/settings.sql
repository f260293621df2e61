-- For the transaction: the server's patience, and text in forms that mean one thing only.
-- A name that this version does not know is passed over.
SELECT set_config(name, value, true)
FROM (
  VALUES
    ('datestyle', 'ISO, YMD'),
    ('idle_in_transaction_session_timeout', '0'),
    ('intervalstyle', 'iso_8601'),
    ('standard_conforming_strings', 'on'),
    ('statement_timeout', '0'),
    ('timezone', 'UTC'),
    ('transaction_timeout', '0')
) AS wanted (name, value)
WHERE current_setting(name, true) IS NOT NULL
