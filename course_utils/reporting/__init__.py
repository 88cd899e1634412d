"""The report on one page that learners make of their own runs."""
