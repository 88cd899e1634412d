"""The capstone: a narrow VGG-11 on four nodes with slow links, accurate enough, within budgets of bytes and seconds."""
