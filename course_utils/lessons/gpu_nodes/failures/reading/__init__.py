"""From the files of a failed launch to lines with rank, node and time, and to launches."""
