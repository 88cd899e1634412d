"""The exercises of lesson 7: gradients in buckets, sent behind the backward pass, more seldom, in fewer bytes."""
