"""later"""


def check(folder, tally, run):
    pass
