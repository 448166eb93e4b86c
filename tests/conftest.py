"""Options of the test run."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true",
                     help="rewrite tests/golden/*.py with what is generated now, if the oracles accept it")
