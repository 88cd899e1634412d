"""What the measurements of lesson 4 say, in a sentence chosen by the numbers."""


def ping_pong_sentence(thousand: float, million: float) -> str:
    """What two ping-pongs say of a message's price: how many times as long as 1 byte a thousand and a million took."""
    longer = "hardly any longer" if thousand < 1.5 else f"{thousand:.1f} times as long"
    text = f"A thousand times the bytes: {longer}. A million times: {million:.0f} times as long."
    return text if thousand < 500 else f"{text} Here every byte has its price from the first on."
