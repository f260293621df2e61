-- Whether a recipe lets somebody read one of its sources: it is shared with them, and its owner may lend the source.
SELECT penstock.share_role('recipe', r.recipe_id, :username) IS NOT NULL
       AND penstock.may_lend_source(:data_source_id, r.owner_username)
FROM penstock.recipe r WHERE r.recipe_id = :recipe_id
