"""The operator graph of a model, and how each operator may be spread over devices."""
