"""Ranks without processes: greenlets of this kernel, each with a clock of its own. Read `virtual_time` first."""
