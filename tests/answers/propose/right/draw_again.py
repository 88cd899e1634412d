def propose(strategy, choices, random):
    while True:
        number = int(random.integers(len(strategy)))
        if len(choices[number]) == 1:
            continue
        config = choices[number][int(random.integers(len(choices[number])))]
        while config == strategy[number]:
            config = choices[number][int(random.integers(len(choices[number])))]
        return [config if place == number else old for place, old in enumerate(strategy)]
