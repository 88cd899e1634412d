def propose(strategy, choices, random):
    for number in random.permutation(len(strategy)):
        others = [one for one in choices[number] if one != strategy[number]]
        if others:
            new = list(strategy)
            new[number] = others[random.permutation(len(others))[0]]
            return new
