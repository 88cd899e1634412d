"""The exercises of lesson 14: two shares of a rank's time, and five slow programs to make faster."""
