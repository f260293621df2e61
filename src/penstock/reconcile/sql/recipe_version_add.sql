INSERT INTO penstock.recipe_version (recipe_id, version, document, digest, created_by) VALUES (:recipe_id, :version, :document, :digest, :created_by)
