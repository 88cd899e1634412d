"""How deck 5 runs its page: with more sizes of the vector than the page measures."""

PAGE = {"lengths": [4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 400_000]}  # bytes
DRAFT = {"PAGE": {"lengths": [4_000, 400_000]}}
