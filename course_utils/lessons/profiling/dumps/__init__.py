"""Dumps of torch's Flight Recorder: what each rank called last, read, compared, and put into sentences."""
