"""The puzzle of lesson 10: beat 1F1B under a memory budget. The rules, good answers, and a class's leaderboard."""
