"""The exercises of lesson 9: whole layers on different ranks, then one layer on several, and what it takes in bytes."""
