SELECT draining FROM penstock.control
