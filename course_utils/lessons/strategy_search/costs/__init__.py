"""What each part of an operator and each message costs: described by somebody, or measured here."""
