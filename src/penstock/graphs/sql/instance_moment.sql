SELECT penstock.now()
