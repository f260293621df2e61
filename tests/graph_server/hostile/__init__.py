"""What code inside an engine could try, and a graph server whose engine tries it."""
