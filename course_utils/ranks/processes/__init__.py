"""The processes of ranks on this machine: started, watched, told apart, and ended."""
