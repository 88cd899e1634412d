"""The capstone: a narrow VGG-11 on four nodes with slow links, accurate within budgets of bytes and image passes."""
