"""The allowlist of SQL functions by dialect and name; any other function is refused.

Allowed: pure functions of their arguments, the clock, and random numbers. Never: files, network,
environment, settings, session and user, sequences, locks, sleeping, large objects, executing a
string as SQL, models. Tests compare the DuckDB and PostgreSQL lists with those engines' own
catalogs, which record whether a function has side effects.
"""

from __future__ import annotations

SHARED = {
    "aggregates": """
        any_value array_agg avg bit_and bit_or bit_xor corr count covar_pop covar_samp grouping max
        min stddev stddev_pop stddev_samp sum var_pop var_samp variance
    """,
    "windows": """
        cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
        row_number
    """,
    "conditions": "all any case cast coalesce exists greatest if least nullif some",
    "mathematics": """
        abs acos asin atan atan2 cbrt ceil ceiling cos cosh cot degrees exp floor ln log log10 log2
        mod pi pow power radians rand random round sign sin sinh sqrt tan tanh trunc truncate
        width_bucket
    """,
    "strings": """
        ascii char_length character_length chr concat concat_ws left length lower lpad ltrim
        octet_length position regexp_extract regexp_like regexp_replace repeat replace reverse right
        rpad rtrim split split_part starts_with strpos substr substring translate trim upper
    """,
    "dates": """
        current_date current_time current_timestamp date date_add date_diff date_trunc day extract
        hour last_day localtime localtimestamp minute month now quarter second time timestamp week
        year
    """,
    "json": "json_array json_array_length json_extract json_object json_value",
    "arrays": "array array_length cardinality row struct unnest",
    "digests": "md5 sha1 sha256 sha512",
}

DUCKDB = {
    "aggregates": """
        approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min
        arg_min_null argmax argmin bitstring_agg bool_and bool_or count_if count_star countif
        entropy favg first fsum geomean geometric_mean group_concat histogram histogram_exact
        kahan_sum kurtosis kurtosis_pop last list listagg mad max_by mean median min_by mode
        percentile_cont percentile_disc product quantile quantile_cont quantile_disc regr_avgx
        regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
        reservoir_quantile sem skewness string_agg sum_no_overflow sumkahan
    """,
    "conditions": "columns ifnull isfinite isinf isnan switch try try_cast typeof",
    "mathematics": """
        acosh add asinh atanh bit_count divide even factorial fdiv fmod gamma gcd
        greatest_common_divisor isfinite lcm least_common_multiple lgamma multiply nextafter
        round_even roundbankers signbit subtract xor
    """,
    "strings": """
        array_to_string bar base64 bin bit_length contains damerau_levenshtein decode editdist3
        encode ends_with format format_bytes from_base64 from_binary from_hex hamming hex
        ilike_escape initcap instr jaccard jaro_similarity jaro_winkler_similarity lcase
        left_grapheme len length_grapheme levenshtein like_escape mismatches nfc_normalize ord
        overlay parse_dirname parse_dirpath parse_filename parse_path prefix printf regexp_escape
        regexp_extract_all regexp_full_match regexp_matches regexp_split_to_array
        regexp_split_to_table right_grapheme str_split str_split_regex string_split
        string_split_regex string_to_array strip_accents strlen substring_grapheme suffix to_base
        to_base64 to_binary to_hex ucase unbin unhex unicode url_decode url_encode
    """,
    "dates": """
        age ago century current_localtime current_localtimestamp date_part date_sub datediff
        datepart datesub datetrunc dayname dayofmonth dayofweek dayofyear days_in_month decade epoch
        epoch_ms epoch_ns epoch_us era generate_series get_current_time get_current_timestamp isodow
        isoyear julian make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns
        make_timestamptz microsecond millennium millisecond monthname nanosecond range strftime
        strptime time_bucket timezone timezone_hour timezone_minute to_centuries to_days to_decades
        to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
        to_seconds to_timestamp to_weeks to_years today transaction_timestamp try_strptime weekday
        weekofyear yearweek
    """,
    "json": """
        array_to_json from_json from_json_strict json json_contains json_exists json_extract_path
        json_extract_path_text json_extract_string json_group_array json_group_object
        json_group_structure json_keys json_merge_patch json_pretty json_quote json_structure
        json_transform json_transform_strict json_type json_valid row_to_json to_json
    """,
    "arrays": """
        array_append array_apply array_cat array_concat array_contains array_cosine_distance
        array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product
        array_extract array_filter array_grade_up array_has array_has_all array_has_any
        array_indexof array_inner_product array_intersect array_pop_back array_pop_front
        array_position array_prepend array_push_back array_push_front array_reduce array_resize
        array_reverse array_reverse_sort array_select array_slice array_sort array_transform
        array_unique array_value array_where array_zip element_at filter flatten generate_subscripts
        grade_up list_any_value list_append list_apply list_approx_count_distinct list_avg
        list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat
        list_contains list_cosine_distance list_cosine_similarity list_count list_distance
        list_distinct list_dot_product list_element list_entropy list_extract list_filter list_first
        list_grade_up list_has list_has_all list_has_any list_histogram list_indexof
        list_inner_product list_intersect list_kurtosis list_last list_mad list_max list_median
        list_min list_mode list_pack list_position list_prepend list_product list_reduce list_resize
        list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
        list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique
        list_value list_var_pop list_var_samp list_where list_zip map map_concat map_contains
        map_contains_entry map_contains_value map_entries map_extract map_extract_value
        map_from_entries map_keys map_values reduce struct_concat struct_contains struct_extract
        struct_extract_at struct_indexof struct_insert struct_keys struct_pack struct_position
        struct_update struct_values union_extract union_tag union_value
    """,
    "enumerations": """
        bit_position bitstring enum_code enum_first enum_last enum_range enum_range_boundary get_bit
        set_bit
    """,
    "digests": """
        gen_random_uuid hash md5_number md5_number_lower md5_number_upper uuid uuidv4 uuidv7
    """,
}

POSTGRES = {
    "aggregates": """
        bool_and bool_or every json_agg json_object_agg jsonb_agg jsonb_object_agg mode
        percentile_cont percentile_disc range_agg regr_avgx regr_avgy regr_count regr_intercept
        regr_r2 regr_slope regr_sxx regr_sxy regr_syy string_agg
    """,
    "conditions": "num_nonnulls num_nulls",
    "mathematics": """
        acosd acosh asind asinh atan2d atand atanh cosd cotd div erf erfc factorial gcd lcm
        min_scale random_normal scale sind tand trim_scale
    """,
    "strings": """
        bit_count bit_length btrim convert_from convert_to decode encode format get_bit get_byte
        initcap is_normalized normalize overlay parse_ident quote_ident quote_literal quote_nullable
        regexp_count regexp_instr regexp_match regexp_matches regexp_split_to_array
        regexp_split_to_table regexp_substr string_to_array string_to_table to_ascii to_hex
        to_number unistr
    """,
    "dates": """
        age clock_timestamp date_bin date_part isfinite justify_days justify_hours justify_interval
        make_date make_interval make_time make_timestamp make_timestamptz statement_timestamp
        timezone to_char to_date to_timestamp transaction_timestamp
    """,
    "json": """
        array_to_json json_array_elements json_array_elements_text json_build_array
        json_build_object json_each json_each_text json_extract_path json_extract_path_text
        json_object_keys json_strip_nulls json_to_record json_to_recordset json_typeof
        jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
        jsonb_build_object jsonb_each jsonb_each_text jsonb_exists jsonb_extract_path
        jsonb_extract_path_text jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_match
        jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set
        jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof row_to_json to_json
        to_jsonb
    """,
    "arrays": """
        array_append array_cat array_dims array_fill array_lower array_ndims array_position
        array_positions array_prepend array_remove array_replace array_to_string array_upper
        generate_series generate_subscripts trim_array
    """,
    "ranges": """
        daterange int4range int8range isempty lower_inc lower_inf numrange range_merge tsrange
        tstzrange upper_inc upper_inf
    """,
    "networks": "abbrev broadcast family host hostmask masklen netmask network set_masklen",
    "search": """
        phraseto_tsquery plainto_tsquery to_tsquery to_tsvector ts_headline ts_rank ts_rank_cd
        websearch_to_tsquery
    """,
    "digests": "gen_random_uuid sha224 sha384",
    "enumerations": "enum_first enum_last enum_range",
}

TRINO = {
    "aggregates": """
        approx_distinct approx_most_frequent approx_percentile approx_set arbitrary bitwise_and_agg
        bitwise_or_agg bitwise_xor_agg bool_and bool_or checksum count_if entropy
        evaluate_classifier_predictions every geometric_mean histogram kurtosis listagg map_agg
        map_union max_by merge min_by multimap_agg numeric_histogram qdigest_agg reduce_agg
        regr_intercept regr_slope skewness tdigest_agg
    """,
    "conditions": "format try try_cast typeof",
    "mathematics": """
        beta_cdf bit_count bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_right_shift_arithmetic bitwise_xor cosine_distance cosine_similarity dot_product e
        euclidean_distance from_base infinity inverse_beta_cdf inverse_normal_cdf is_finite
        is_infinite is_nan nan normal_cdf to_base wilson_interval_lower wilson_interval_upper
    """,
    "strings": """
        codepoint from_base32 from_base64 from_base64url from_big_endian_32 from_big_endian_64
        from_hex from_ieee754_32 from_ieee754_64 from_utf8 hamming_distance levenshtein_distance
        luhn_check normalize regexp_count regexp_extract_all regexp_position regexp_split soundex
        split_to_map split_to_multimap to_base32 to_base64 to_base64url to_big_endian_32
        to_big_endian_64 to_hex to_ieee754_32 to_ieee754_64 to_utf8 url_decode url_encode
        url_extract_fragment url_extract_host url_extract_parameter url_extract_path
        url_extract_port url_extract_protocol url_extract_query word_stem
    """,
    "dates": """
        at_timezone current_timezone date_format date_parse day_of_month day_of_week day_of_year dow
        doy format_datetime from_iso8601_date from_iso8601_timestamp from_iso8601_timestamp_nanos
        from_unixtime from_unixtime_nanos human_readable_seconds last_day_of_month millisecond
        parse_datetime parse_duration timestamp_objectid timezone timezone_hour timezone_minute
        to_iso8601 to_milliseconds to_unixtime week_of_year with_timezone year_of_week yow
    """,
    "json": """
        is_json_scalar json_array_contains json_array_get json_exists json_extract_scalar
        json_format json_parse json_query json_size
    """,
    "arrays": """
        all_match any_match array_distinct array_except array_first array_histogram array_intersect
        array_join array_last array_max array_min array_position array_remove array_sort array_union
        arrays_overlap combinations contains contains_sequence element_at filter flatten map
        map_concat map_entries map_filter map_from_entries map_keys map_values map_zip_with
        multimap_from_entries ngrams none_match reduce sequence shuffle slice transform
        transform_keys transform_values trim_array zip zip_with
    """,
    "sketches": """
        cardinality empty_approx_set intersection_cardinality jaccard_index make_set_digest
        quantile_at_value value_at_quantile values_at_quantiles
    """,
    "networks": "contains ip_prefix ip_subnet_max ip_subnet_min ip_subnet_range is_subnet_of",
    "geometry": """
        great_circle_distance st_area st_asbinary st_astext st_buffer st_centroid st_contains
        st_crosses st_difference st_disjoint st_distance st_envelope st_equals st_geometryfromtext
        st_geomfrombinary st_intersection st_intersects st_length st_linefromtext st_numpoints
        st_overlaps st_point st_polygon st_touches st_union st_within st_x st_y to_geometry
        to_spherical_geography
    """,
    "digests": """
        crc32 hmac_md5 hmac_sha1 hmac_sha256 hmac_sha512 murmur3 spooky_hash_v2_32 spooky_hash_v2_64
        uuid xxhash64
    """,
}

MYSQL = {
    "aggregates": "group_concat json_arrayagg json_objectagg std",
    "conditions": "convert ifnull interval isnull match",
    "mathematics": "bit_count conv crc32",
    "strings": """
        bin char elt export_set field find_in_set format from_base64 hex initcap insert instr lcase
        locate make_set mid oct ord quote regexp_instr regexp_substr soundex space strcmp
        substring_index to_base64 ucase unhex weight_string
    """,
    "dates": """
        adddate addtime convert_tz curdate current_date curtime date_format date_sub datediff
        dayname dayofmonth dayofweek dayofyear from_days from_unixtime get_format makedate maketime
        microsecond monthname period_add period_diff sec_to_time str_to_date subdate subtime sysdate
        time_format time_to_sec timediff timestampadd timestampdiff to_days to_seconds
        unix_timestamp utc_date utc_time utc_timestamp weekday weekofyear yearweek
    """,
    "json": """
        json_contains json_contains_path json_depth json_insert json_keys json_length
        json_merge_patch json_merge_preserve json_overlaps json_pretty json_quote json_remove
        json_replace json_search json_set json_type json_unquote json_valid
    """,
    "networks": "inet6_aton inet6_ntoa inet_aton inet_ntoa is_ipv4 is_ipv6",
    "geometry": """
        st_area st_asgeojson st_astext st_centroid st_contains st_distance st_distance_sphere
        st_geomfromtext st_intersects st_latitude st_length st_longitude st_within st_x st_y
    """,
    "digests": "bin_to_uuid is_uuid sha sha2 uuid uuid_to_bin",
}

BIGQUERY = {
    "aggregates": """
        approx_count_distinct approx_quantiles approx_top_count approx_top_sum array_concat_agg
        countif hll_count.extract hll_count.init hll_count.merge hll_count.merge_partial logical_and
        logical_or max_by min_by percentile_cont percentile_disc string_agg
    """,
    "conditions": "collate ifnull safe_cast",
    "mathematics": """
        acosh asinh atanh bit_count cosine_distance div euclidean_distance ieee_divide is_inf is_nan
        range_bucket safe_add safe_divide safe_multiply safe_negate safe_subtract
    """,
    "strings": """
        byte_length code_points_to_bytes code_points_to_string contains_substr edit_distance
        ends_with format from_base32 from_base64 from_hex host initcap instr ip_from_string
        ip_net_mask ip_to_string ip_trunc normalize normalize_and_casefold public_suffix reg_domain
        regexp_contains regexp_extract_all regexp_instr regexp_substr safe_convert_bytes_to_string
        safe_ip_from_string soundex to_base32 to_base64 to_code_points to_hex unicode
    """,
    "dates": """
        current_datetime date_bucket date_from_unix_date date_sub datetime datetime_add
        datetime_bucket datetime_diff datetime_sub datetime_trunc format_date format_datetime
        format_time format_timestamp generate_date_array generate_timestamp_array justify_days
        justify_hours justify_interval make_interval parse_date parse_datetime parse_time
        parse_timestamp time_add time_diff time_sub time_trunc timestamp_add timestamp_bucket
        timestamp_diff timestamp_micros timestamp_millis timestamp_seconds timestamp_sub
        timestamp_trunc unix_date unix_micros unix_millis unix_seconds
    """,
    "json": """
        bool float64 int64 json_extract_array json_extract_scalar json_extract_string_array
        json_keys json_query json_query_array json_remove json_set json_strip_nulls json_type
        json_value_array lax_bool lax_float64 lax_int64 lax_string parse_json string to_json
        to_json_string
    """,
    "arrays": """
        array_concat array_first array_includes array_last array_max array_min array_reverse
        array_slice array_to_string generate_array offset ordinal safe_offset safe_ordinal
    """,
    "numbers": "bignumeric numeric parse_bignumeric parse_numeric",
    "geometry": """
        st_area st_asgeojson st_astext st_centroid st_contains st_distance st_dwithin
        st_geogfromgeojson st_geogfromtext st_geogpoint st_intersects st_length st_within st_x st_y
    """,
    "digests": "farm_fingerprint generate_uuid",
}

IN_FROM = {
    "duckdb": """
        generate_series generate_subscripts json_each json_tree range regexp_split_to_table unnest
    """,
    "postgres": """
        generate_series generate_subscripts json_array_elements json_array_elements_text json_each
        json_each_text json_object_keys json_to_record json_to_recordset jsonb_array_elements
        jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query
        jsonb_to_record jsonb_to_recordset regexp_matches regexp_split_to_table string_to_table
        unnest
    """,
    "trino": "json_table table unnest",
    "mysql": "json_table",
    "bigquery": "unnest",
}


def _names(*tables: dict[str, str]) -> frozenset[str]:
    return frozenset(name for table in tables for text in table.values() for name in text.split())


FUNCTIONS = {
    "duckdb": _names(SHARED, DUCKDB),
    "postgres": _names(SHARED, POSTGRES),
    "trino": _names(SHARED, TRINO),
    "mysql": _names(SHARED, MYSQL),
    "bigquery": _names(SHARED, BIGQUERY),
}
TABLE_FUNCTIONS = {dialect: frozenset(text.split()) for dialect, text in IN_FROM.items()}

# Arguments that some functions take as a bare word; they must not be quoted like columns.
WORD_ARGUMENTS = frozenset(
    """MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY DAYOFWEEK DAYOFYEAR WEEK ISOWEEK MONTH QUARTER
    YEAR ISOYEAR DATE TIME DATETIME TIMESTAMP MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY
    SUNDAY NFC NFD NFKC NFKD""".split()  # noqa: SIM905
)
