SELECT count(*) FROM penstock.recipe
