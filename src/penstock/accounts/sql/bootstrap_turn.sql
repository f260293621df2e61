-- One at a time: whoever waits here sees the user that the one before has made.
LOCK TABLE penstock.account IN SHARE ROW EXCLUSIVE MODE
