-- A recipe's shares go with it: its name may be taken again by somebody else.

CREATE TRIGGER recipe_shares AFTER DELETE ON penstock.recipe
  FOR EACH ROW EXECUTE FUNCTION penstock.delete_shares('recipe', 'recipe_id');
